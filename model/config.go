package model

import (
	"fmt"
	"path/filepath"

	"caper/model/decoder"
	"caper/model/qwen3"
	"caper/model/qwen35"
)

// ConfigName is the configuration's file name in a model folder.
const ConfigName = "config.json"

// Config is what a model folder's config.json says.
type Config struct {
	// Text is the shape of the decoder: a qwen35.Config or a qwen3.Config.
	Text Architecture
	// Reward is true for a model with a scalar score head (Hugging Face's sequence
	// classification with one label) and false for a language model.
	Reward bool
	// ClauseToken and EndToken are the added tokens at which a clause reward model
	// is read (see Layout): the end of a clause and the end of the query. Empty in
	// a model that is none.
	ClauseToken, EndToken string
	// LabelTokens are the tokens, one or two, between whose logits the score of a
	// reward model with a language-model head lies (see head.go). Empty in all others.
	LabelTokens []string

	file decoder.Object // the text model's keys as they were read, nil for a new model
}

// Architecture is the shape of a decoder.
type Architecture interface {
	ModelType() string
	Shared() decoder.Config
	Validate() error
	Keys() (decoder.Object, error)
}

// class is a model class of transformers, as config.json's architectures names it.
type class struct {
	modelType, name string
	reward          bool
}

// classes lists what can be loaded. The first of a model type and kind is what a
// model is saved as; the others hold the same text model inside a vision model.
var classes = []class{
	{qwen35.ModelType, "Qwen3_5ForCausalLM", false},
	{qwen35.ModelType, "Qwen3_5TextForSequenceClassification", true},
	{qwen35.ModelType, "Qwen3_5ForConditionalGeneration", false},
	{qwen35.ModelType, "Qwen3_5ForSequenceClassification", true},
	{qwen3.ModelType, "Qwen3ForCausalLM", false},
	{qwen3.ModelType, "Qwen3ForSequenceClassification", true},
}

// ReadConfig reads dir's config.json. What is not implemented is refused with the
// key and the value.
func ReadConfig(dir string) (Config, error) {
	path := filepath.Join(dir, ConfigName)
	o, err := decoder.ReadObject(path)
	if err != nil {
		return Config{}, err
	}
	c, err := parseConfig(o)
	if err != nil {
		return Config{}, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

func parseConfig(o decoder.Object) (Config, error) {
	var c Config
	o, modelType, err := unwrap(o)
	if err != nil {
		return c, err
	}
	c.file = o
	switch modelType {
	case qwen35.ModelType:
		c.Text, err = qwen35.ParseConfig(o)
	case qwen3.ModelType:
		c.Text, err = qwen3.ParseConfig(o)
	default:
		err = fmt.Errorf("model_type: %q: not supported, only %q, %q, %q", modelType, qwen35.OuterType, qwen35.ModelType, qwen3.ModelType)
	}
	if err != nil {
		return c, err
	}
	if c.Reward, err = parseClass(o, modelType); err != nil {
		return c, err
	}
	for key, value := range map[string]any{
		"caper_clause_token": &c.ClauseToken, "caper_end_token": &c.EndToken, "caper_label_tokens": &c.LabelTokens,
	} {
		if err := o.Decode(key, value); err != nil {
			return c, err
		}
	}
	if err := checkLabels(c.LabelTokens); err != nil {
		return c, fmt.Errorf("caper_label_tokens: %w", err)
	}
	if c.Reward && len(c.LabelTokens) > 0 {
		return c, fmt.Errorf("caper_label_tokens: %q beside a score head: a model has one of the two", c.LabelTokens)
	}
	return c, nil
}

// unwrap returns the text model's keys: o itself, or its text_config together with
// the outer keys that concern the text model.
func unwrap(o decoder.Object) (text decoder.Object, modelType string, err error) {
	if err := o.Decode("model_type", &modelType); err != nil || modelType != qwen35.OuterType {
		return o, modelType, err
	}
	if err := o.Decode("text_config", &text); err != nil {
		return nil, "", err
	}
	if text == nil {
		return nil, "", fmt.Errorf("text_config: missing")
	}
	for _, key := range []string{"architectures", "tie_word_embeddings", "id2label", "num_labels", "quantization_config", "caper_clause_token", "caper_end_token", "caper_label_tokens"} {
		if o.Has(key) {
			text[key] = o[key]
		}
	}
	return text, modelType + "_text", nil
}

// parseClass reports whether the architecture is a reward model.
func parseClass(o decoder.Object, modelType string) (reward bool, err error) {
	if !o.Has("architectures") {
		return false, nil
	}
	var names []string
	if err := o.Decode("architectures", &names); err != nil {
		return false, err
	}
	for _, k := range classes {
		if len(names) == 1 && names[0] == k.name && modelType == k.modelType {
			if k.reward {
				err = checkScalar(o)
			}
			return k.reward, err
		}
	}
	return false, fmt.Errorf("architectures: %q with model_type %q: not supported", names, modelType)
}

func checkScalar(o decoder.Object) error {
	var labels map[string]any
	if err := o.Decode("id2label", &labels); err != nil {
		return err
	}
	if labels != nil && len(labels) != 1 {
		return fmt.Errorf("id2label: %d labels: not supported, only a scalar score (1 label)", len(labels))
	}
	return o.Require("num_labels", 1.0)
}

// object returns the content of config.json for weights stored in dtype ("float32",
// "bfloat16"). Keys of the file that the model was read from and that nobody here
// knows are kept.
func (c *Config) object(dtype string) (decoder.Object, error) {
	o, err := c.Text.Keys()
	if err != nil {
		return nil, err
	}
	for key, value := range c.file {
		if _, known := o[key]; !known {
			o[key] = value
		}
	}
	for _, older := range []string{"torch_dtype", "rope_theta", "rope_scaling", "partial_rotary_factor", "transformers_version", "num_labels"} {
		delete(o, older)
	}
	set := map[string]any{
		"model_type": c.Text.ModelType(), "architectures": []string{c.className()}, "dtype": dtype,
		"hidden_act": "silu", "attention_bias": false, "attention_dropout": 0.0,
	}
	if c.ClauseToken != "" {
		set["caper_clause_token"] = c.ClauseToken
	}
	if c.EndToken != "" {
		set["caper_end_token"] = c.EndToken
	}
	delete(o, "caper_label_tokens") // of a model that was given a score head
	if len(c.LabelTokens) > 0 {
		set["caper_label_tokens"] = c.LabelTokens
	}
	if c.Reward && !o.Has("id2label") {
		set["id2label"] = map[string]string{"0": "LABEL_0"}
		set["label2id"] = map[string]int{"LABEL_0": 0}
	}
	for key, value := range set {
		if err := o.Set(key, value); err != nil {
			return nil, err
		}
	}
	return o, nil
}

func (c *Config) className() string {
	for _, k := range classes {
		if k.modelType == c.Text.ModelType() && k.reward == c.Reward {
			return k.name
		}
	}
	panic("model: no class for " + c.Text.ModelType())
}
