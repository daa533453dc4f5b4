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
	if t.Reference() {
		specForward(o)
	} else {
		cpuForward(t, o)
	}
	t.Record(o)
	return o.y
}

type op struct {
	table, y *engine.Tensor
	ids      []int32
}

func (o *op) Backward(t *engine.Tape) {
	dy, dtable := t.Gradient(o.y), t.AddTo(o.table)
	if dy == nil || dtable == nil {
		return
	}
	if t.Reference() {
		specBackward(o, dtable, dy)
	} else {
		cpuBackward(t, o, dtable, dy)
	}
}
