// Package embedding looks up the vectors of tokens.
package embedding

import (
	"fmt"

	"caper/engine"
)

// Forward returns the rows of table [V, H] that ids names: [len(ids), H]. ids must
// stay unchanged until the tape is reset.
func Forward(t *engine.Tape, table *engine.Tensor, ids []int32) *engine.Tensor {
	for r, id := range ids {
		if id < 0 || int(id) >= table.Rows {
			panic(fmt.Sprintf("embedding: token %d of row %d is outside the table %s", id, r, table))
		}
	}
	o := engine.NewOp[op](t)
	*o = op{table: table, ids: ids, y: t.New(len(ids), table.Cols)}
	t.Run(o)
	return o.y
}

type op struct {
	table, y *engine.Tensor
	ids      []int32
}

func (o *op) Forward(t *engine.Tape) {
	switch {
	case t.Reference():
		specForward(o)
	case t.CPU():
		cpuForward(t, o)
	case t.CUDA():
		cudaForward(t, o)
	}
}

func (o *op) Backward(t *engine.Tape) {
	dy, dtable := t.Gradient(o.y), t.AddTo(o.table)
	if dy == nil || dtable == nil {
		return
	}
	switch {
	case t.Reference():
		specBackward(o, dtable, dy)
	case t.CPU():
		cpuBackward(t, o, dtable, dy)
	case t.CUDA():
		cudaBackward(t, o, dtable, dy)
	}
}

func (o *op) Cost() engine.Cost {
	return engine.Cost{Operator: "embedding", Reads: engine.Tensors{o.table.Touched(len(o.ids))}, Writes: engine.Tensors{o.y}}
}
