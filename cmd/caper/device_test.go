package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"caper/kernels/optest"
)

// The commands do on a GPU, emulated or real, what they do on the processor: a reward model
// trains, resumes on either device, scores and finds faults.
func TestCUDACommands(t *testing.T) {
	optest.CUDA(t)
	w := openWorkshop(t, "tuples", "model")
	dir := t.TempDir()
	train := func(device, out string, more ...string) string {
		arguments := append([]string{"train", "prm", "--json", "--device", device}, more...)
		arguments = append(arguments, w.training(out)...)
		must(t, append(arguments, "model.head_dim=16", "model.linear_key_head_dim=16", "model.linear_value_head_dim=16", "train.checkpoint_every=2", "train.keep_checkpoints=4")...)
		return filepath.Join(out, "model")
	}
	host, card := filepath.Join(dir, "host"), filepath.Join(dir, "card")
	train("cpu", host)
	model := train("cuda", card)
	want := lastLoss(t, host)
	if got := lastLoss(t, card); !(math.Abs(got-want) <= 1e-2) {
		t.Errorf("loss %g on the card, %g on the processor", got, want)
	}
	// The last two of four steps on the other device.
	for out, device := range map[string]string{host: "cuda", card: "cpu"} {
		for _, past := range []string{"checkpoints/step-4", "model"} {
			if err := os.RemoveAll(filepath.Join(out, past)); err != nil {
				t.Fatal(err)
			}
		}
		train(device, out, "--resume")
		if got := lastLoss(t, out); !(math.Abs(got-want) <= 1e-2) {
			t.Errorf("loss %g resumed with --device %s, want %g", got, device, want)
		}
	}

	short := filepath.Join(dir, "bf16")
	train("cuda", short, "train.moments=bf16")
	if got := lastLoss(t, short); !(math.Abs(got-want) <= 2e-2) {
		t.Errorf("loss %g with means in bf16, want %g", got, want)
	}

	top1 := map[string]float64{}
	for _, device := range []string{"cpu", "cuda"} {
		var found struct {
			Top1 float64 `json:"top1"`
		}
		r := must(t, "localize", "--model", model, "--tuples", w.tuples, "--json", "--device", device)
		if err := json.Unmarshal([]byte(r.stdout), &found); err != nil {
			t.Fatal(err)
		}
		top1[device] = found.Top1
	}
	if math.Abs(top1["cpu"]-top1["cuda"]) > 0.05 {
		t.Errorf("Top-1 %v", top1)
	}
}

func lastLoss(t *testing.T, out string) (loss float64) {
	t.Helper()
	for _, line := range lines(readFile(t, filepath.Join(out, "metrics.jsonl"))) {
		var m struct {
			Loss *float64 `json:"loss"`
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		if m.Loss != nil {
			loss = *m.Loss
		}
	}
	return loss
}
