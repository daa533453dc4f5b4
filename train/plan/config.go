package plan

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"caper/engine"
	"caper/model"
	"caper/model/lora"
	"caper/train/dapo"
	"caper/train/grpo"
	"caper/train/prm"
	"caper/train/run"
	"caper/train/sft"
)

// Lengths are the mean tokens of what a run reads and writes, of which its configuration
// knows the limits alone.
type Lengths struct {
	Prompt, Answer int
}

// ReadJob reads the configuration of a training, of whichever kind, and describes it.
func ReadJob(path string, overrides []string, l Lengths) (Job, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Job{}, fmt.Errorf("configuration: %w", err)
	}
	switch kindOf(text) {
	case "sft":
		c, err := sft.LoadConfig(path, overrides)
		if err != nil {
			return Job{}, err
		}
		return ofSFT(c, l)
	case "grpo":
		c, err := grpo.LoadConfig(path, overrides)
		if err != nil {
			return Job{}, err
		}
		return ofGRPO(c, l)
	case "dapo":
		c, err := dapo.LoadConfig(path, overrides)
		if err != nil {
			return Job{}, err
		}
		return ofGRPO(c.Config, l) // the first stage
	}
	c, err := prm.LoadConfig(path, overrides)
	if err != nil {
		return Job{}, err
	}
	return ofPRM(c, l)
}

// kindOf tells by its keys which training a configuration is of; one that says nothing, or
// is none, passes for a reward model's, whose reader says what is wrong.
func kindOf(text []byte) string {
	var sections map[string]map[string]any
	if err := toml.Unmarshal(text, &sections); err != nil {
		return "prm"
	}
	train := sections["train"]
	switch {
	case sections["curriculum"] != nil || sections["second"] != nil:
		return "dapo"
	case sections["policy"] != nil || sections["rollout"] != nil || sections["reward"] != nil:
		return "grpo"
	case train["batch_queries"] != nil || train["bench"] != nil || train["split"] != nil:
		return "sft"
	}
	return "prm"
}

// ofSFT describes supervised training. Queries of one database that go together share its
// schema, not their questions: each counts with a prompt of its own.
func ofSFT(c sft.Config, l Lengths) (Job, error) {
	j := Job{Stage: "sft", Items: c.Train.BatchQueries, Epochs: c.Train.Epochs}
	if err := j.describe(c.Model, c.Train.Train, c.LoRA); err != nil {
		return j, err
	}
	j.Load = Load{Prompts: c.Train.BatchQueries, Continuations: c.Train.BatchQueries, Prompt: l.Prompt, Answer: l.Answer, Passes: 1}
	return j, nil
}

// ofPRM describes the training of a reward model. Every pair counts with a prompt of its
// own: how many share one is the data's business (Plan.SetSharing).
func ofPRM(c prm.Config, l Lengths) (Job, error) {
	j := Job{Stage: "prm", Items: c.Train.BatchPairs, Epochs: c.Train.Epochs}
	if err := j.describe(c.Model.Model, c.Train.Train, c.LoRA); err != nil {
		return j, err
	}
	j.Model.Reward = true
	j.Load = Load{Prompts: c.Train.BatchPairs, Continuations: 2 * c.Train.BatchPairs, Prompt: l.Prompt, Answer: l.Answer, Passes: 1}
	return j, nil
}

// ofGRPO describes the training of a policy. With dynamic sampling a step samples more
// than it learns from; what it learns from is counted.
func ofGRPO(c grpo.Config, l Lengths) (Job, error) {
	j := Job{Stage: "grpo", Items: c.Train.BatchQuestions, Epochs: c.Train.Epochs}
	if err := j.describe(c.Model, c.Train.Train, c.LoRA); err != nil {
		return j, err
	}
	j.Load = Load{
		Prompts: c.Train.BatchQuestions, Continuations: c.Train.BatchQuestions * c.Rollout.Samples,
		Prompt: min(l.Prompt, c.Rollout.MaxPrompt), Answer: min(l.Answer, c.Rollout.MaxTokens), Passes: c.Policy.Passes,
	}
	j.MaxLength = min(j.MaxLength, c.Rollout.MaxPrompt+c.Rollout.MaxTokens)
	j.Sampler = &Sampler{c.Rollout.CacheTokens, c.Rollout.Batch}
	if c.Policy.KL > 0 {
		reference := Copy{Role: "reference", Remark: "the policy without its adapter", Batches: true}
		if c.LoRA.Rank == 0 || c.Policy.Reference != "" {
			same := j.Model
			reference.Model, reference.Remark = &same, "a copy of the policy"
		}
		j.Copies = append(j.Copies, reference)
	}
	return j, j.judge(c)
}

// judge adds the reward model. One that is not there yet counts as large as the policy.
func (j *Job) judge(c grpo.Config) error {
	if c.Reward.Model == "" {
		return nil
	}
	judge := Copy{Role: "reward model", Remark: "taken to be as large as the policy", Batches: true}
	m, err := model.ReadConfig(c.Reward.Model)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		m = j.Model
	case err != nil:
		return err
	default:
		judge.Remark = filepath.Base(c.Reward.Model)
	}
	m.Reward = true
	judge.Model = &m
	j.Copies = append(j.Copies, judge)
	return nil
}

// describe takes over what all trainings have.
func (j *Job) describe(m run.Model, t run.Train, a run.LoRA) error {
	if m.Path == "" {
		return errors.New("model.path is empty: a new model's vocabulary comes from its data, and it is small: no need to plan; give model.path=DIR, or a published size as in model.path=Qwen3.5-9B")
	}
	var err error
	if j.Name, j.Model, err = Find(m.Path); err != nil {
		return err
	}
	if j.Checkpointing, err = engine.ParseCheckpointing(t.Checkpointing); err != nil {
		return err
	}
	if j.Precision = MixedFloat; t.Moments == run.MomentsBFloat16 {
		j.Precision = MomentsBF16Float
	}
	if a.Rank > 0 {
		j.Adapter = &lora.Config{Rank: a.Rank, Alpha: a.Alpha, Targets: a.Targets}
	}
	j.MicroBatch, j.MaxLength, j.Steps = t.MicroBatchTokens, t.MaxLength, t.MaxSteps
	return nil
}

// Find returns the configuration of a model folder or, where there is none of that path,
// of the published model that its last part names: models/Qwen3.5-9B-Base.
func Find(path string) (string, model.Config, error) {
	c, err := model.ReadConfig(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return filepath.Base(path), c, err
	}
	name := strings.TrimSuffix(filepath.Base(path), "-Base")
	c, known := Named(name)
	if known != nil {
		return "", c, fmt.Errorf("%s: no such folder, and %w", path, known)
	}
	return name, c, nil
}
