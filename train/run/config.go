package run

import (
	"strings"

	"caper/engine"
	"caper/model/lora"
	"caper/model/qwen35"
	"caper/train/settings"
)

// Sections are what a run reads of a trainer's configuration: pointers into it.
type Sections struct {
	Model *Model
	Train *Train
	LoRA  *LoRA

	// Whole is the configuration, a pointer to a struct whose sections embed those above;
	// Defaults is another one with the values that it started from, which may be
	// overwritten; Origin tells where the values were written.
	Whole, Defaults any
	Origin          settings.Origin

	// Added are the tokens of a new vocabulary that no text contains, beside
	// model.end_token.
	Added []string
}

// Model says where the weights come from: a folder in Hugging Face layout, or a new Qwen3.5
// model of the given shape with a vocabulary trained on the run's texts.
type Model struct {
	Path              string  `toml:"path" comment:"HF model folder to start from; empty: a new model of the shape below"`
	HiddenSize        int     `toml:"hidden_size"`
	Layers            int     `toml:"num_hidden_layers" comment:"in every full_attention_interval-th layer full attention, in the others gated delta nets"`
	FullAttentionGap  int     `toml:"full_attention_interval"`
	IntermediateSize  int     `toml:"intermediate_size"`
	AttentionHeads    int     `toml:"num_attention_heads"`
	KeyValueHeads     int     `toml:"num_key_value_heads"`
	HeadDim           int     `toml:"head_dim"`
	LinearKeyHeads    int     `toml:"linear_num_key_heads"`
	LinearValueHeads  int     `toml:"linear_num_value_heads"`
	LinearKeyDim      int     `toml:"linear_key_head_dim"`
	LinearValueDim    int     `toml:"linear_value_head_dim"`
	VocabularySize    int     `toml:"vocab_size" comment:"size of the vocabulary trained on the run's texts"`
	EndToken          string  `toml:"end_token" comment:"added token that ends the query"`
	InitializerStdDev float64 `toml:"initializer_range" comment:"standard deviation of fresh matrices"`
	EmbeddingStdDev   float64 `toml:"embedding_std"`
	OutputScale       float64 `toml:"output_scale" comment:"factor on the matrices that write to the residual stream"`
	CopyScale         float64 `toml:"copy_scale" comment:"above 0: attention's fresh output matrices are the transposed value matrices times this, so that heads copy tokens"`
	WordShare         float64 `toml:"word_share" comment:"share of the variance of fresh embeddings that tokens of one word have in common, whatever stands before it"`
	LogitScale        float64 `toml:"logit_scale" comment:"of the last norm: below 1, a head of fresh embeddings of size 1 gives smaller logits"`
	MinTimeStep       float64 `toml:"min_time_step" comment:"of the delta nets' heads, which start with memories of different length"`
	MaxTimeStep       float64 `toml:"max_time_step"`
}

// Train holds run folder, schedule, optimiser and limits.
type Train struct {
	Out               string  `toml:"out" comment:"run folder"`
	Seed              uint64  `toml:"seed"`
	MaxSteps          int     `toml:"max_steps" comment:"optimiser steps at most; 0: as many as the epochs have"`
	MicroBatchTokens  int     `toml:"micro_batch_tokens" comment:"tokens of one packed forest at most"`
	Checkpointing     string  `toml:"checkpointing" comment:"none, selective or full: which activations the backward pass makes again to save memory"`
	MemoryGB          float64 `toml:"memory_gb" comment:"most that steps may take, in GB of 1e9 bytes; 0: nine tenths of the machine's memory"`
	MaxLength         int     `toml:"max_length" comment:"tokens of one sequence; longer ones are left out and counted"`
	LR                float64 `toml:"lr"`
	MinLRRatio        float64 `toml:"min_lr_ratio" comment:"learning rate at the end, as a share of lr"`
	Warmup            float64 `toml:"warmup" comment:"share of the steps with a rising learning rate"`
	Beta1             float64 `toml:"beta1"`
	Beta2             float64 `toml:"beta2"`
	Epsilon           float64 `toml:"eps"`
	WeightDecay       float64 `toml:"weight_decay"`
	GradClip          float64 `toml:"grad_clip" comment:"largest global gradient norm"`
	ValidateEvery     int     `toml:"validate_every" comment:"steps between validations; 0: at the end only"`
	ValidateQuestions int     `toml:"validate_questions" comment:"held-out questions of each validation, at most"`
	Patience          int     `toml:"patience" comment:"validations without a better one before stopping; 0: never"`
	CheckpointEvery   int     `toml:"checkpoint_every" comment:"steps between checkpoints; 0: at the end only"`
	KeepCheckpoints   int     `toml:"keep_checkpoints"`
	MaxBadSteps       int     `toml:"max_bad_steps" comment:"non-finite steps in a row before the run stops"`
	Threads           int     `toml:"threads" comment:"0: one per core"`
	Precision         string  `toml:"precision" comment:"of linear layers' products: fp32, or bf16: factors rounded to bfloat16, sums and weights float32"`
	Moments           string  `toml:"moments" comment:"AdamW's running means: fp32, or on a GPU bf16, rounded at random, which takes half their memory"`
}

// The values of Train.Moments.
const (
	MomentsFloat32  = "fp32"
	MomentsBFloat16 = "bf16"
)

// LoRA trains a low-rank adapter on the linear maps of a model that is loaded, with what
// the training adds to it, in place of all weights.
type LoRA struct {
	Rank    int      `toml:"rank" comment:"0: no adapter, all weights are trained"`
	Alpha   float64  `toml:"alpha" comment:"the adapter's product is multiplied by alpha / rank"`
	Targets []string `toml:"targets" comment:"names or regular expressions of linear maps, or all-linear"`
}

// Defaults returns the sections that trainers' defaults start from.
func Defaults() (Model, Train, LoRA) {
	return Model{
			HiddenSize: 64, Layers: 4, FullAttentionGap: 2, IntermediateSize: 192,
			AttentionHeads: 4, KeyValueHeads: 4, HeadDim: 32,
			LinearKeyHeads: 4, LinearValueHeads: 4, LinearKeyDim: 32, LinearValueDim: 32,
			VocabularySize: 2560, EndToken: "<|im_end|>",
			InitializerStdDev: 0.09, EmbeddingStdDev: 1, OutputScale: 0.3, LogitScale: 1, MinTimeStep: 0.001, MaxTimeStep: 0.1,
		}, Train{
			Seed: 1, MicroBatchTokens: 8192, MaxLength: 8192,
			LR: 1e-5, MinLRRatio: 0.1, Warmup: 0.03, Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8,
			WeightDecay: 0.1, GradClip: 1, ValidateQuestions: 256,
			KeepCheckpoints: 2, MaxBadSteps: 5, Precision: engine.Float32.String(), Moments: MomentsFloat32, Checkpointing: engine.KeepAll.String(),
		}, LoRA{Alpha: 32, Targets: []string{lora.AllLinear}}
}

func (c Sections) mistake(key, format string, args ...any) error {
	return c.Origin.Mistake(c.Whole, key, format, args...)
}

// ranges lists the values that numbers may take.
var ranges = []settings.Range{
	settings.Within("must be a size from 1 to 1048576", func(x float64) bool { return x >= 1 && x <= 1<<20 },
		"model.hidden_size", "model.num_hidden_layers", "model.full_attention_interval", "model.intermediate_size",
		"model.num_attention_heads", "model.num_key_value_heads", "model.head_dim",
		"model.linear_num_key_heads", "model.linear_num_value_heads", "model.linear_key_head_dim", "model.linear_value_head_dim"),
	settings.Above0(
		"model.initializer_range", "model.embedding_std", "model.output_scale", "model.logit_scale", "model.min_time_step", "model.max_time_step",
		"train.micro_batch_tokens", "train.max_length", "train.lr", "train.eps", "train.grad_clip",
		"train.keep_checkpoints", "train.max_bad_steps", "lora.alpha"),
	settings.AtLeast0(
		"model.copy_scale",
		"train.max_steps", "train.weight_decay", "train.validate_every", "train.validate_questions", "train.patience",
		"train.checkpoint_every", "train.memory_gb", "lora.rank"),
	settings.Share("model.word_share", "train.warmup", "train.min_lr_ratio"),
	settings.Within("must lie in [0, 1)", func(x float64) bool { return x >= 0 && x < 1 }, "train.beta1", "train.beta2"),
	settings.Within("must lie in [0, 1024]; 0: one per core", func(x float64) bool { return x >= 0 && x <= 1024 }, "train.threads"),
}

// Check reports the first value of the sections that no run can use.
func (c Sections) Check() error {
	if err := c.Origin.Check(c.Whole, ranges...); err != nil {
		return err
	}
	if c.Train.Moments != MomentsFloat32 && c.Train.Moments != MomentsBFloat16 {
		return c.mistake("train.moments", "must be %s or %s", MomentsFloat32, MomentsBFloat16)
	}
	if _, err := engine.ParsePrecision(c.Train.Precision); err != nil {
		return c.mistake("train.precision", "must be fp32 or bf16")
	}
	if _, err := engine.ParseCheckpointing(c.Train.Checkpointing); err != nil {
		return c.mistake("train.checkpointing", "must be none, selective or full")
	}
	if c.LoRA.Rank > 0 && c.Model.Path == "" {
		return c.mistake("lora.rank", "an adapter belongs to a model that is there: name its folder, model.path=DIR")
	}
	if c.Model.Path != "" {
		return nil // the shape is the folder's
	}
	return c.checkShape()
}

// checkRun checks what a run needs beside sections that are right in themselves.
func (c Sections) checkRun() error {
	if err := c.Check(); err != nil {
		return err
	}
	if c.Train.Out == "" {
		return c.mistake("train.out", "name the run folder: train.out=DIR")
	}
	return nil
}

// checkShape checks that the sizes of a new model fit each other. Its keys have the
// names of config.json, which the model's own check cites.
func (c Sections) checkShape() error {
	if m := c.Model; m.MinTimeStep > m.MaxTimeStep {
		return c.mistake("model.min_time_step", "must not be above model.max_time_step")
	}
	if added := c.addedTokens(); c.Model.VocabularySize < 256+len(added) || c.Model.VocabularySize > 1<<20 {
		return c.mistake("model.vocab_size", "must lie in [%d, 1048576]: 256 bytes and %d added tokens", 256+len(added), len(added))
	}
	shape := c.Model.shape()
	if dims := shape.RotaryDims(); dims <= 0 || dims%2 != 0 {
		return c.mistake("model.head_dim", "must be a multiple of 8: a quarter of the dimensions turn in pairs")
	}
	if err := shape.Validate(); err != nil {
		key, problem, _ := strings.Cut(err.Error(), ": ")
		return c.mistake("model."+key, "%s", problem)
	}
	return nil
}

// addedTokens are the tokens of a new vocabulary that no text contains.
func (c Sections) addedTokens() []string {
	return append([]string{"<|endoftext|>", c.Model.EndToken}, c.Added...)
}

// shape is the new model as its config.json will describe it.
func (m Model) shape() qwen35.Config {
	c := qwen35.Defaults()
	c.VocabSize = m.VocabularySize
	c.HiddenSize, c.IntermediateSize, c.Layers = m.HiddenSize, m.IntermediateSize, m.Layers
	c.Heads, c.KVHeads, c.HeadDim = m.AttentionHeads, m.KeyValueHeads, m.HeadDim
	c.KeyHeads, c.ValueHeads = m.LinearKeyHeads, m.LinearValueHeads
	c.KeyDim, c.ValueDim = m.LinearKeyDim, m.LinearValueDim
	c.InitRange, c.Tied = m.InitializerStdDev, true
	c.LayerTypes = qwen35.LayerTypes(m.Layers, m.FullAttentionGap)
	return c
}
