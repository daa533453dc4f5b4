package plan

import (
	"fmt"
	"strings"

	"caper/model"
	"caper/model/decoder"
	"caper/model/qwen35"
	"caper/model/safetensors"
)

// Weights counts the parameters of a model and their bytes in checkpoints.
type Weights struct {
	Parameters int `json:"parameters"`
	Embedding  int `json:"embedding"` // of which the token embedding
	Head       int `json:"head"`      // a head of its own: language model or score
	// Mixers and MLPs are those of all layers; Norms what is left.
	Attention  int `json:"attention"`
	DeltaNets  int `json:"delta_nets"`
	MLPs       int `json:"mlps"`
	Norms      int `json:"norms"`
	Tensors    int `json:"tensors"`
	TensorSize int `json:"tensor_bytes"` // BF16, and F32 where checkpoints have it
	// Release is what the published folder holds besides: vision tower and the block
	// that predicts a further token. Zero for a configuration without a published one.
	Release Release `json:"release,omitzero"`
}

// Release describes the official checkpoint of a published Qwen3.5 model.
type Release struct {
	Vision     int `json:"vision_parameters"`
	NextToken  int `json:"next_token_parameters"`
	Tensors    int `json:"tensors"`
	TensorSize int `json:"tensor_bytes"`
}

// Count counts the weights of a model of this configuration.
func Count(c model.Config) Weights {
	var w Weights
	for _, p := range c.Weights() {
		n := elements(p.Shape)
		w.Parameters += n
		w.Tensors++
		w.TensorSize += bytesOf(p)
		*w.part(p.Name) += n
	}
	return w
}

// part is the count to which the parameter of that name belongs.
func (w *Weights) part(name string) *int {
	switch {
	case strings.Contains(name, "embed_tokens"):
		return &w.Embedding
	case strings.HasPrefix(name, "lm_head"), strings.HasPrefix(name, "score"):
		return &w.Head
	case strings.Contains(name, ".self_attn."):
		return &w.Attention
	case strings.Contains(name, ".linear_attn."):
		return &w.DeltaNets
	case strings.Contains(name, ".mlp."):
		return &w.MLPs
	}
	return &w.Norms
}

func bytesOf(p *decoder.Parameter) int {
	return elements(p.Shape) * int(p.DType(safetensors.BF16).Size())
}

func elements(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// released returns the official checkpoint of a published model. Only Qwen3.5 has more
// in it than the text model.
func released(name string) Release {
	s, ok := find(name)
	if !ok || s.valueHeads == 0 {
		return Release{}
	}
	text := Count(model.Config{Text: s.text()})
	r := Release{Tensors: text.Tensors, TensorSize: text.TensorSize}
	for _, shape := range s.vision.shapes(s.hidden) {
		r.Vision += elements(shape)
		r.Tensors++
	}
	for _, shape := range s.nextToken() {
		r.NextToken += elements(shape)
		r.Tensors++
	}
	r.TensorSize += 2 * (r.Vision + r.NextToken)
	return r
}

// nextToken lists the weights of the multi-token-prediction block: norms of the
// embedding, of the hidden state and of the result, a map of both to one, and a layer
// of full attention.
func (s size) nextToken() [][]int {
	shapes := [][]int{{s.hidden}, {s.hidden}, {s.hidden}, {s.hidden, 2 * s.hidden}}
	c := s.text().(qwen35.Config)
	c.Layers, c.LayerTypes = 1, []string{decoder.FullAttention}
	for _, p := range (model.Config{Text: c}).Weights() {
		if strings.HasPrefix(p.Name, "model.layers.") {
			shapes = append(shapes, p.Shape)
		}
	}
	return shapes
}

// vision is the shape of a vision tower: a transformer over patches of 16 x 16 pixels
// and 2 frames, whose results are merged 2 x 2.
type vision struct{ depth, width, mlp int }

// shapes lists the tower's weights, which end in vectors of the language model's size.
// Every map and norm has a bias.
func (v vision) shapes(hidden int) [][]int {
	const channels, frames, patch, merged, positions = 3, 2, 16, 4, 2304
	maps := func(out, in int) [][]int { return [][]int{{out, in}, {out}} }
	norm := [][]int{{v.width}, {v.width}}
	shapes := [][]int{{v.width, channels, frames, patch, patch}, {v.width}, {positions, v.width}}
	for range v.depth {
		for _, part := range [][][]int{norm, norm, maps(3*v.width, v.width), maps(v.width, v.width), maps(v.mlp, v.width), maps(v.width, v.mlp)} {
			shapes = append(shapes, part...)
		}
	}
	shapes = append(shapes, norm...)
	shapes = append(shapes, maps(merged*v.width, merged*v.width)...)
	return append(shapes, maps(hidden, merged*v.width)...)
}

// String sums the parts up in a line of millions.
func (w Weights) String() string {
	million := func(n int) string { return fmt.Sprintf("%.1f M", float64(n)/1e6) }
	parts := []string{"embedding " + million(w.Embedding)}
	for _, part := range []struct {
		name string
		n    int
	}{{"head", w.Head}, {"attention", w.Attention}, {"delta nets", w.DeltaNets}, {"MLPs", w.MLPs}, {"norms", w.Norms}} {
		if part.n > 0 {
			parts = append(parts, part.name+" "+million(part.n))
		}
	}
	return strings.Join(parts, ", ")
}
