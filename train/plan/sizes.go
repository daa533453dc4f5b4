package plan

import (
	"fmt"
	"strings"

	"caper/model"
	"caper/model/decoder"
	"caper/model/qwen3"
	"caper/model/qwen35"
)

// size is a published model: the dimensions in which the sizes of a family differ.
type size struct {
	name                                         string
	hidden, layers, intermediate, heads, kvHeads int
	valueHeads                                   int // of the gated delta nets; 0 in Qwen3, which has none
	tied                                         bool
	vision                                       vision
}

// sizes are the published models: the config.json files of Qwen/Qwen3.5-* and
// Qwen/Qwen3-*.
var sizes = []size{
	{"0.8B", 1024, 24, 3584, 8, 2, 16, true, vision{12, 768, 3072}},
	{"2B", 2048, 24, 6144, 8, 2, 16, true, vision{24, 1024, 4096}},
	{"4B", 2560, 32, 9216, 16, 4, 32, true, vision{24, 1024, 4096}},
	{"9B", 4096, 32, 12288, 16, 4, 32, false, vision{27, 1152, 4304}},
	{"27B", 5120, 64, 17408, 24, 4, 48, false, vision{27, 1152, 4304}},

	{"qwen3-0.6B", 1024, 28, 3072, 16, 8, 0, true, vision{}},
	{"qwen3-1.7B", 2048, 28, 6144, 16, 8, 0, true, vision{}},
	{"qwen3-4B", 2560, 36, 9728, 32, 8, 0, true, vision{}},
	{"qwen3-8B", 4096, 36, 12288, 32, 8, 0, false, vision{}},
	{"qwen3-14B", 5120, 40, 17408, 40, 8, 0, false, vision{}},
	{"qwen3-32B", 5120, 64, 25600, 64, 8, 0, false, vision{}},
}

// Names lists the published sizes that Named knows.
func Names() []string {
	var names []string
	for _, s := range sizes {
		names = append(names, s.name)
	}
	return names
}

// find returns a published size by its name; "qwen3.5-9b" is another one of "9B".
func find(name string) (size, bool) {
	for _, s := range sizes {
		if strings.EqualFold(s.name, name) || strings.EqualFold("qwen3.5-"+s.name, name) {
			return s, true
		}
	}
	return size{}, false
}

// Named returns the configuration of a published model: "9B" (or "qwen3.5-9b"),
// "qwen3-8B".
func Named(name string) (model.Config, error) {
	s, ok := find(name)
	if !ok {
		return model.Config{}, fmt.Errorf("model %q: no folder of that name, and not one of %s", name, strings.Join(Names(), ", "))
	}
	return model.Config{Text: s.text()}, nil
}

func (s size) text() model.Architecture {
	if s.valueHeads == 0 {
		c := qwen3.Defaults()
		c.VocabSize, c.LayerTypes = 151936, qwen3.LayerTypes(s.layers)
		s.fill(&c.Config)
		return c
	}
	c := qwen35.Defaults()
	c.VocabSize, c.LayerTypes, c.ValueHeads = 248320, qwen35.LayerTypes(s.layers, 4), s.valueHeads
	s.fill(&c.Config)
	return c
}

func (s size) fill(c *decoder.Config) {
	c.HiddenSize, c.IntermediateSize, c.Layers = s.hidden, s.intermediate, s.layers
	c.Heads, c.KVHeads, c.Tied = s.heads, s.kvHeads, s.tied
}
