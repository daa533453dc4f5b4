package run

import (
	"math"
	"strings"
	"unicode"

	"caper/engine"
	"caper/model"
	"caper/model/qwen35"
	"caper/model/tokenizer"
)

// freshen changes the initial weights of a model that starts from nothing. The
// family's own start, N(0, initializer_range) everywhere, suits wide models trained
// on billions of tokens; a narrow one that sees a few million learns to read its
// prompt only with these (docs/LOG.md has the measurements):
//
//   - Embeddings of size 1, and small output projections: the token itself stays the
//     larger part of the residual stream, so later layers can compare tokens.
//   - A final norm of logit_scale: the head is the embedding, and of size 1 it would give
//     the first logits a standard deviation of sqrt(hidden_size), so that the first steps
//     only undo them.
//   - Query rows equal to key rows: a head attends to earlier copies of its token
//     from the first step (Trockman and Kolter 2023, arXiv 2305.09828).
//   - Outputs that undo values (copy_scale): what a head passes on of the token that it looks
//     at is that token, so a query's literals are copied once a head looks at the right
//     place (the other half of the same paper's start).
//   - Embeddings with a part in common (word_share) for tokens of one word: " title" of a
//     question, "(title" of a schema and ".title" of a query are three tokens.
//   - Time steps spread over min_time_step to max_time_step (Gu and Dao 2023, arXiv
//     2312.00752): with dt_bias 1 and A up to 16, a delta-net head forgets
//     everything within a token or two.
func freshen(m *model.Model, words *tokenizer.Tokenizer, c qwen35.Config, shape Model, seed uint64) {
	byName := map[string]*engine.Param{}
	for _, p := range m.Params() {
		byName[p.Name] = p
		switch {
		case p == m.Embedding:
			rescale(p, shape.EmbeddingStdDev/shape.InitializerStdDev)
			if shape.WordShare > 0 {
				shareWords(p, words, shape, seed)
			}
		case strings.HasSuffix(p.Name, "o_proj.weight"), strings.HasSuffix(p.Name, "out_proj.weight"),
			strings.HasSuffix(p.Name, "down_proj.weight"):
			rescale(p, shape.OutputScale)
		case p.Name == "model.norm.weight": // its factors are 1 + weight
			fill(p, shape.LogitScale-1)
		case strings.HasSuffix(p.Name, "dt_bias"):
			spreadTimeSteps(p, shape.MinTimeStep, shape.MaxTimeStep)
		}
	}
	for name, query := range byName {
		if prefix, ok := strings.CutSuffix(name, "q_proj.weight"); ok {
			alignQueries(query, byName[prefix+"k_proj.weight"], c)
			if shape.CopyScale > 0 {
				alignOutputs(byName[prefix+"o_proj.weight"], byName[prefix+"v_proj.weight"], c, shape.CopyScale)
			}
		}
	}
}

// shareWords gives the embeddings of tokens that are one word, but for what stands before
// it, a part in common.
func shareWords(embedding *engine.Param, words *tokenizer.Tokenizer, shape Model, seed uint64) {
	own, common := math.Sqrt(1-shape.WordShare), math.Sqrt(shape.WordShare)*shape.EmbeddingStdDev
	for id := range embedding.Rows {
		word := strings.TrimLeftFunc(words.Decode([]int32{int32(id)}, true), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
		if word == "" {
			continue
		}
		ofWord := engine.Random(seed, "word "+word, 0, 0)
		for j := range embedding.Cols {
			embedding.Set(id, j, own*embedding.At(id, j)+common*ofWord.NormFloat64())
		}
	}
}

func rescale(p *engine.Param, factor float64) {
	for i := range p.Rows {
		for j := range p.Cols {
			p.Set(i, j, factor*p.At(i, j))
		}
	}
}

func fill(p *engine.Param, value float64) {
	for i := range p.Rows {
		for j := range p.Cols {
			p.Set(i, j, value)
		}
	}
}

// spreadTimeSteps sets the biases of [1, heads] so that softplus(bias) runs
// geometrically from the smallest to the largest time step.
func spreadTimeSteps(bias *engine.Param, smallest, largest float64) {
	for j := range bias.Cols {
		share := (float64(j) + 0.5) / float64(bias.Cols)
		step := smallest * math.Pow(largest/smallest, share)
		bias.Set(0, j, math.Log(math.Expm1(step)))
	}
}

// alignQueries copies each key head's rows of k_proj to its query heads in q_proj,
// whose heads are laid out [query | gate].
func alignQueries(query, key *engine.Param, c qwen35.Config) {
	group := c.Heads / c.KVHeads
	for head := range c.Heads {
		for i := range c.HeadDim {
			for j := range query.Cols {
				query.Set(2*head*c.HeadDim+i, j, key.At(head/group*c.HeadDim+i, j))
			}
		}
	}
}

// alignOutputs makes o_proj the transpose of v_proj, times a factor: each query head's
// columns are the rows of its value head.
func alignOutputs(output, value *engine.Param, c qwen35.Config, factor float64) {
	group := c.Heads / c.KVHeads
	for head := range c.Heads {
		for i := range c.HeadDim {
			for j := range output.Rows {
				output.Set(j, head*c.HeadDim+i, factor*value.At(head/group*c.HeadDim+i, j))
			}
		}
	}
}
