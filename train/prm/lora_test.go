package prm

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"caper/engine"
	"caper/model"
	"caper/train/run"
	"caper/train/settings"
)

// languageModel leaves a small random language model in a folder and returns a
// configuration that starts from it.
func languageModel(t *testing.T, overrides ...string) Config {
	t.Helper()
	first := trained(t, smallConfig(t, "train.max_steps=1"), run.Options{})
	reward, err := model.Load(first.ModelDir, engine.CPU(1))
	if err != nil {
		t.Fatal(err)
	}
	m, err := model.New(model.Config{Text: reward.Config.Text}, engine.CPU(1), 7)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.SetTokenizer(reward.Tokenizer); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := m.Save(dir); err != nil {
		t.Fatal(err)
	}
	return smallConfig(t, append([]string{"model.path=" + dir}, overrides...)...)
}

// A run with an adapter lowers the loss, leaves an adapter as its result, and gives the
// same bits when it is interrupted.
func TestLoRA(t *testing.T) {
	c := languageModel(t, "lora.rank=4", "lora.alpha=8", "lora.targets=(q|k|v|o)_proj,mlp[.].*", "train.epochs=10", "train.lr=1e-2", "train.checkpoint_every=7")
	before := fileText(t, c.Model.Path, "model.safetensors")
	outcome := trained(t, c, run.Options{})
	lines, err := run.ReadMetrics[Metrics](c.Train.Out)
	if err != nil {
		t.Fatal(err)
	}
	var losses []float64
	for _, m := range lines {
		if m.Loss != nil {
			losses = append(losses, *m.Loss)
		}
	}
	if first, last := mean(losses[:5]), mean(losses[len(losses)-5:]); !(last < 0.8*first) {
		t.Errorf("loss from %.3f to %.3f", first, last)
	}
	if fileText(t, c.Model.Path, "model.safetensors") != before {
		t.Error("the base model changed")
	}
	if _, err := os.Stat(filepath.Join(outcome.ModelDir, "model.safetensors")); err == nil {
		t.Error("the result holds all weights, not the adapter alone")
	}
	m, err := model.Load(outcome.ModelDir, engine.CPU(1), model.Frozen)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := model.NewScorer(m, 0); err != nil || m.Adapter == nil || m.Score == nil {
		t.Errorf("the result scores no clauses: %v", err)
	}
	want := runFiles(t, c.Train.Out)
	c.Train.Out = filepath.Join(t.TempDir(), "again")
	if err := interruptAt(t, c, 11); !errors.Is(err, run.ErrInterrupted) {
		t.Fatal(err)
	}
	trained(t, c, run.Options{Resume: true})
	got := runFiles(t, c.Train.Out)
	for name, text := range want {
		if got[name] != text {
			t.Errorf("%s differs after an interruption", name)
		}
	}
}

// What layers keep for the backward pass changes no bit of an adapter's training: its
// addition in place happens once, also where a layer is computed again.
func TestLoRAWithCheckpointing(t *testing.T) {
	c := languageModel(t, "lora.rank=4", "train.max_steps=4", "train.lr=1e-2")
	var want string
	for _, mode := range []string{"none", "selective", "full"} {
		c.Train.Checkpointing, c.Train.Out = mode, filepath.Join(t.TempDir(), mode)
		outcome := trained(t, c, run.Options{})
		got := fileText(t, outcome.ModelDir, "adapter_model.safetensors")
		if want == "" {
			want = got
		}
		if got != want {
			t.Errorf("%s: another adapter", mode)
		}
	}
}

// With model.head=token no head is added: the scores are those of label tokens.
func TestLabelTokenHead(t *testing.T) {
	for _, c := range []Config{languageModel(t, "model.head=token", "train.max_steps=3"), smallConfig(t, "model.head=token", "train.max_steps=3", "loss.language_model=0.1")} {
		outcome := trained(t, c, run.Options{})
		m, err := model.Load(outcome.ModelDir, engine.CPU(1), model.Frozen)
		if err != nil {
			t.Fatal(err)
		}
		if m.Score != nil || strings.Join(m.Config.LabelTokens, "") != "+-" {
			t.Errorf("%+v", m.Config)
		}
		if _, err := model.NewScorer(m, 0); err != nil {
			t.Error(err)
		}
	}
}

func TestHeadAndAdapterMistakes(t *testing.T) {
	for want, override := range map[string]string{
		"model.head": "model.head=yes", "lora.rank": "lora.rank=4", "lora.alpha": "lora.alpha=0", "nearest is \"lora.rank\"": "lora.rnk=4",
	} {
		if _, err := LoadConfig("", []string{override}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v", override, err)
		}
	}
	for want, override := range map[string]string{"lora.targets": "lora.targets=nothing", "model.label_tokens": "model.label_tokens=żółć"} {
		c := languageModel(t, override, "lora.rank=2", "model.head=token")
		_, err := Train(t.Context(), c, run.Options{})
		if err == nil || !strings.Contains(err.Error(), want) || !errors.As(err, new(*settings.Error)) {
			t.Errorf("%s: error %v", override, err)
		}
	}
}
