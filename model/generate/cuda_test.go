package generate

import (
	"testing"

	"caper/engine"
	"caper/kernels/optest"
	"caper/kernels/sampling"
)

// On a GPU, emulated or real, the same requests are served as on the processor: log-probs of
// what was drawn are those of its own training pass, within what bf16 leaves of them, and the
// steps of a batch that stays as it is run as graphs.
func TestCUDAGeneration(t *testing.T) {
	device := optest.CUDA(t)
	for _, family := range families {
		t.Run(family, func(t *testing.T) {
			c := small(family, 300)
			m, err := newModel(t, c, engine.CPU(2)).CopyTo(device)
			if err != nil {
				t.Fatal(err)
			}
			prompt := make([]int32, 70)
			for i := range prompt {
				prompt[i] = int32(i * i % 300)
			}
			ask := Request{Prompt: prompt, Samples: 3, MaxTokens: 24, Rule: sampling.Rule{Temperature: 1}}
			_, before, _ := device.Replays()
			s := run(t, newGenerator(t, m, Options{Batch: 4, Tokens: 1024}), ask)[0].Samples
			_, after, refused := device.Replays()
			if refused != nil || after == before {
				t.Errorf("no step ran as a graph (%v)", refused)
			}
			again := run(t, newGenerator(t, m, Options{Batch: 4, Tokens: 1024}), ask)[0].Samples
			for i, want := range trained(m, prompt, s[0].Tokens, s[1].Tokens, s[2].Tokens) {
				if d := apart(s[i].LogProbs, want); !(d <= 0.1) {
					t.Errorf("sample %d: log-probs differ by %g from those of a training pass", i, d)
				}
				if !sameSample(s[i], again[i]) {
					t.Errorf("sample %d: %+v, a second time %+v", i, s[i], again[i])
				}
			}
			if err := engine.Wait(device); err != nil {
				t.Fatal(err)
			}
		})
	}
}
