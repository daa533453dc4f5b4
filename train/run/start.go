package run

import (
	"iter"

	"caper/engine"
	"caper/kernels/adamw"
	"caper/model"
	"caper/model/lora"
	"caper/model/tokenizer"
)

// Start makes the model: that of the checkpoint, or a new run's, from a folder or with
// random weights and a vocabulary trained on texts. config is a new model's, without its
// shape. prepare makes a new run's model fit for the training; nil: it is.
func (r *Run) Start(texts iter.Seq[string], config model.Config, prepare func(*model.Model) error) error {
	if r.from != "" {
		if err := r.load(r.from); err != nil {
			return err
		}
		r.Params = r.Model.Trainable()
		return nil
	}
	var err error
	if path := r.sections.Model.Path; path != "" {
		if err := r.planWeights(); err != nil {
			return err
		}
		r.Model, err = model.Load(path, r.Device, r.loading()...)
	} else {
		r.Model, err = r.newModel(texts, config)
	}
	if err != nil {
		return err
	}
	if r.Model.Tokenizer == nil {
		return r.sections.mistake("model.path", "no tokenizer.json in that folder: copy it from where the weights come from")
	}
	if prepare != nil {
		if err := prepare(r.Model); err != nil {
			return err
		}
	}
	if l := r.sections.LoRA; l.Rank > 0 {
		c := lora.Config{Rank: l.Rank, Alpha: l.Alpha, Targets: l.Targets}
		if err := r.Model.AddAdapter(c, r.sections.Model.Path, r.sections.Train.Seed); err != nil {
			return r.sections.mistake("lora.targets", "%w", err)
		}
	}
	r.Params = r.Model.Trainable()
	r.Moments = r.newMoments()
	return nil
}

// newMoments returns the optimiser's state before the first step.
func (r *Run) newMoments() *adamw.State {
	if r.bfloat16Moments() {
		return adamw.NewBF16State(r.Device, r.Model.Trainable(), r.Model.Decays(), r.sections.Train.Seed)
	}
	return adamw.NewState(r.Model.Trainable(), r.Model.Decays())
}

func (r *Run) bfloat16Moments() bool { return r.sections.Train.Moments == MomentsBFloat16 }

// loading is how the weights are loaded to start from: without gradients where only an
// adapter is trained.
func (r *Run) loading() []model.Option {
	if r.sections.LoRA.Rank > 0 {
		return []model.Option{model.Frozen}
	}
	return nil
}

// newModel makes a Qwen3.5 text model of the configured shape.
func (r *Run) newModel(texts iter.Seq[string], config model.Config) (*model.Model, error) {
	c := r.sections.Model
	words, err := tokenizer.Train(texts, tokenizer.TrainOptions{VocabSize: c.VocabularySize, Added: r.sections.addedTokens()})
	if err != nil {
		return nil, err
	}
	config.Text = c.shape()
	m, err := model.New(config, r.host(), r.sections.Train.Seed)
	if err != nil {
		return nil, err
	}
	freshen(m, words, c.shape(), *c, r.sections.Train.Seed)
	if err := m.SetTokenizer(words); err != nil || m.Device() == r.Device {
		return m, err
	}
	return m.CopyTo(r.Device)
}

// host is the device on which initial weights are made, one by one: r's own unless that is a
// GPU.
func (r *Run) host() engine.Device {
	if engine.GPUOf(r.Device) != nil {
		return engine.CPU(1)
	}
	return r.Device
}
