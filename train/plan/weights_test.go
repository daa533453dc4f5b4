package plan

import "testing"

// The figures are those of the published models: parameters and bytes of the official
// checkpoints (index total_size, file sizes less headers), tensors of their indexes.
func TestPublishedSizes(t *testing.T) {
	for _, want := range []struct {
		name                            string
		parameters, tensors             int
		nextToken, vision, tensorBytes  int
		attention, deltaNet, mlp        int // of one layer
		attentionLayers, deltaNetLayers int
	}{
		{"0.8B", 752393024, 320, 20452864, 100592896, 1746882752, 7340544, 10543264, 11010048, 6, 18},
		{"2B", 1881825088, 320, 60828160, 331416576, 4548144832, 14680576, 21061792, 37748736, 6, 18},
		{"4B", 4205751296, 426, 120599552, 333514240, 9319737856, 36700672, 42139840, 70778880, 8, 24},
		{"9B", 8953803264, 427, 243290624, 456010480, 19306216416, 58720768, 67403968, 150994944, 8, 24},
		{"27B", 26895998464, 851, 424699392, 460730096, 55562872800, 104858112, 115876064, 267386880, 16, 48},
		{name: "qwen3-0.6B", parameters: 596049920, tensors: 310},
		{name: "qwen3-1.7B", parameters: 1720574976, tensors: 310},
		{name: "qwen3-4B", parameters: 4022468096, tensors: 398},
		{name: "qwen3-8B", parameters: 8190735360, tensors: 399},
		{name: "qwen3-14B", parameters: 14768307200, tensors: 443},
		{name: "qwen3-32B", parameters: 32762123264, tensors: 707},
	} {
		c, err := Named(want.name)
		if err != nil {
			t.Fatal(err)
		}
		w := Count(c)
		r := released(want.name)
		check := func(what string, got, expected int) {
			if got != expected {
				t.Errorf("%s: %s %d, want %d", want.name, what, got, expected)
			}
		}
		check("parameters", w.Parameters, want.parameters)
		check("tensors", w.Tensors, want.tensors)
		if want.vision == 0 {
			continue
		}
		check("attention", w.Attention, want.attention*want.attentionLayers)
		check("delta nets", w.DeltaNets, want.deltaNet*want.deltaNetLayers)
		check("MLPs", w.MLPs, want.mlp*(want.attentionLayers+want.deltaNetLayers))
		check("next-token block", r.NextToken, want.nextToken)
		check("vision tower", r.Vision, want.vision)
		check("checkpoint bytes", r.TensorSize, want.tensorBytes)
		// 2B and 4B as in their indexes; the others text, 15 of the next-token block, 12 a vision layer and 9.
		for name, tensors := range map[string]int{"0.8B": 320 + 15 + 12*12 + 9, "2B": 632, "4B": 738, "9B": 427 + 15 + 12*27 + 9, "27B": 851 + 15 + 12*27 + 9} {
			if want.name == name {
				check("checkpoint tensors", r.Tensors, tensors)
			}
		}
	}
}
