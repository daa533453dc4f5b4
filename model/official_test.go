package model

import (
	"fmt"
	"strings"
	"testing"

	"caper/model/qwen35"
)

// Parameters, tensors and bytes of the published checkpoints (the sizes of their files
// and indexes): each shape loads as a configuration and describes exactly that many.
func TestOfficialShapes(t *testing.T) {
	for _, c := range []struct {
		name                                         string
		hidden, mlp, layers, heads, kv, valueHeads   int
		tied                                         bool
		parameters, tensors, multiToken, vision, all int // all: bytes of all tensors, vision and next-token block included
	}{
		{"Qwen3.5-0.8B", 1024, 3584, 24, 8, 2, 16, true, 752_393_024, 320, 20_452_864, 100_592_896, 1_746_882_752},
		{"Qwen3.5-2B", 2048, 6144, 24, 8, 2, 16, true, 1_881_825_088, 320, 60_828_160, 331_416_576, 4_548_144_832},
		{"Qwen3.5-4B", 2560, 9216, 32, 16, 4, 32, true, 4_205_751_296, 426, 120_599_552, 333_514_240, 9_319_737_856},
		{"Qwen3.5-9B", 4096, 12288, 32, 16, 4, 32, false, 8_953_803_264, 427, 243_290_624, 456_010_480, 19_306_216_416},
		{"Qwen3.5-27B", 5120, 17408, 64, 24, 4, 48, false, 26_895_998_464, 851, 424_699_392, 460_730_096, 55_562_872_800},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := parseEdited(t, officialConfig, map[string]any{
				"hidden_size": c.hidden, "intermediate_size": c.mlp, "num_hidden_layers": c.layers, "num_attention_heads": c.heads,
				"num_key_value_heads": c.kv, "linear_num_value_heads": c.valueHeads, "tie_word_embeddings": c.tied,
			})
			parameters, tensors, float32s := count(config)
			if parameters != c.parameters || tensors != c.tensors {
				t.Errorf("%d parameters in %d tensors, want %d in %d", parameters, tensors, c.parameters, c.tensors)
			}
			// Two bytes each, and two more where the checkpoint keeps F32.
			if bytes := 2*(parameters+c.multiToken+c.vision) + 2*float32s; bytes != c.all {
				t.Errorf("%d bytes, want %d", bytes, c.all)
			}
			// The next-token block is a layer of full attention, a projection from twice the
			// width, and three norms.
			text := config.Text.(qwen35.Config)
			text.Layers, text.LayerTypes, text.Tied = 1, []string{"full_attention"}, true
			one, _, _ := count(Config{Text: text})
			h := c.hidden
			if got := one - text.VocabSize*h + 2*h*h + 2*h; got != c.multiToken {
				t.Errorf("%d parameters in the next-token block, want %d", got, c.multiToken)
			}
		})
	}
	for _, c := range []struct {
		name                           string
		hidden, mlp, layers, heads, kv int
		tied                           bool
		parameters, tensors            int
	}{
		{"Qwen3-0.6B", 1024, 3072, 28, 16, 8, true, 596_049_920, 310},
		{"Qwen3-1.7B", 2048, 6144, 28, 16, 8, true, 1_720_574_976, 310},
		{"Qwen3-4B", 2560, 9728, 36, 32, 8, true, 4_022_468_096, 398},
		{"Qwen3-8B", 4096, 12288, 36, 32, 8, false, 8_190_735_360, 399},
		{"Qwen3-14B", 5120, 17408, 40, 40, 8, false, 14_768_307_200, 443},
		{"Qwen3-32B", 5120, 25600, 64, 64, 8, false, 32_762_123_264, 707},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := parseEdited(t, qwen3Config, map[string]any{
				"hidden_size": c.hidden, "intermediate_size": c.mlp, "num_hidden_layers": c.layers, "num_attention_heads": c.heads,
				"num_key_value_heads": c.kv, "tie_word_embeddings": c.tied,
			})
			if parameters, tensors, _ := count(config); parameters != c.parameters || tensors != c.tensors {
				t.Errorf("%d parameters in %d tensors, want %d in %d", parameters, tensors, c.parameters, c.tensors)
			}
		})
	}
}

// parseEdited parses a configuration with other values for some keys.
func parseEdited(t *testing.T, text string, values map[string]any) Config {
	t.Helper()
	for key, value := range values {
		before, after, ok := strings.Cut(text, `"`+key+`": `)
		if !ok {
			t.Fatalf("no %s", key)
		}
		text = fmt.Sprintf(`%s"%s": %v%s`, before, key, value, after[strings.IndexAny(after, ",}\n"):])
	}
	c, err := parse(t, text)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// count returns the elements and the number of all weights, and the elements of those
// that stay in F32.
func count(c Config) (elements, tensors, float32s int) {
	for _, p := range c.Weights() {
		n := 1
		for _, d := range p.Shape {
			n *= d
		}
		elements += n
		tensors++
		if p.Float32 {
			float32s += n
		}
	}
	return elements, tensors, float32s
}
