package engine

import "caper/cuda"

// TensorMap describes x [rows, cols], of bf16, to bulk copies of boxes of boxRows x boxCols
// elements, whose rows are exchanged within 128 bytes on the way (cuda.TensorLayout). x begins
// at a multiple of 16 bytes, and so do its rows.
func (g *GPU) TensorMap(x *Tensor, boxRows, boxCols int) (m cuda.TensorMap) {
	if g.idle() {
		return m
	}
	m, err := g.device.TensorMap(cuda.TensorLayout{
		Element: cuda.BFloat16, At: x.Address(), Sizes: []uint64{uint64(x.Cols), uint64(x.Rows)},
		Strides: []uint64{uint64(2 * x.Stride)}, Box: []uint32{uint32(boxCols), uint32(boxRows)}, Swizzle: 128,
	})
	g.fail(err)
	return m
}
