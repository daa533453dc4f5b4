// Package sampling draws tokens from the logits of a language model, and says how
// probable they were.
package sampling

import (
	"fmt"

	"caper/engine"
)

// Rule says from which distribution a token is drawn. The zero Rule takes the token
// with the highest logit, of equal ones that with the lowest id.
//
// Logits are divided by the temperature; then TopK, TopP and MinP narrow the choice
// one after the other, in the order in which transformers applies them. Tokens as
// probable as the last one that a filter keeps are kept with it.
type Rule struct {
	// Temperature 0 is the greedy choice, whatever the filters say.
	Temperature float64
	// TopK keeps that many of the most probable tokens; 0 keeps all.
	TopK int
	// TopP keeps the fewest of the most probable tokens that together have this
	// share; 0 and 1 keep all.
	TopP float64
	// MinP keeps tokens at least this many times as probable as the most probable.
	MinP float64
}

// Check returns what is wrong with the rule.
func (r Rule) Check() error {
	switch {
	case !(r.Temperature >= 0 && r.Temperature <= 1e6):
		return fmt.Errorf("temperature %g: must be from 0 (greedy) to 1e6", r.Temperature)
	case r.TopK < 0 || r.TopK > 1<<30:
		return fmt.Errorf("top-k %d: must not be negative; 0 keeps all tokens", r.TopK)
	case !(r.TopP >= 0 && r.TopP <= 1):
		return fmt.Errorf("top-p %g: must be from 0 to 1; 0 and 1 keep all tokens", r.TopP)
	case !(r.MinP >= 0 && r.MinP <= 1):
		return fmt.Errorf("min-p %g: must be from 0 to 1", r.MinP)
	}
	return nil
}

// Draw is a request for one token and its answer. C code reads and writes it: keep the
// fields as in sampling.h.
type Draw struct {
	Temperature, TopP, MinP float64
	Uniform                 float64 // a random number in [0, 1)
	Row                     int32   // of the logits
	TopK                    int32
	// Token is the answer, -1 where the row's logits are not finite.
	Token int32
	// LogProb is the logarithm of the probability that the model gives the token:
	// softmax over all logits at temperature 1. Drawn is that of having drawn it:
	// after temperature and filters, 0 for the greedy choice.
	LogProb, Drawn float32
	_              int32
}

// Run answers the draws. logits is [N, V], of which the first words columns are
// tokens that may be drawn; the others only count for LogProb.
func Run(t *engine.Tape, logits *engine.Tensor, words int, draws []Draw) {
	if words < 1 || words > logits.Cols {
		panic(fmt.Sprintf("sampling: %d words of logits %s", words, logits))
	}
	for i := range draws {
		if d := &draws[i]; d.Row < 0 || int(d.Row) >= logits.Rows {
			panic(fmt.Sprintf("sampling: draw %d from row %d of logits %s", i, d.Row, logits))
		}
	}
	if len(draws) == 0 {
		return
	}
	o := engine.NewOp[op](t)
	*o = op{logits: logits, words: words, draws: draws}
	t.Run(o)
}

type op struct {
	engine.NoBackward
	logits *engine.Tensor
	words  int
	draws  []Draw
}

func (o *op) Forward(t *engine.Tape) {
	switch {
	case t.Reference():
		specRun(o)
	case t.CPU():
		cpuRun(t, o)
	case t.CUDA():
		cudaRun(t, o)
	}
}

// Cost counts an exponential as one operation: two for each logit.
func (o *op) Cost() engine.Cost {
	return engine.Cost{
		Operator: "sampling", Reads: engine.Tensors{o.logits.Touched(len(o.draws))},
		Forward: 2 * float64(len(o.draws)) * float64(o.logits.Cols),
	}
}
