package optest

import "caper/cuda/emulator"

// TensorMap cuts m into boxes of rows x cols with a swizzle of 128 bytes, as
// engine.GPU.TensorMap does.
func (d *EmulatedGPU) TensorMap(m Matrix, rows, cols int) *emulator.TensorMap {
	d.Helper()
	t, err := d.lib.TensorMap(m.Memory, emulator.BFloat16, []int{m.Cols, m.Rows}, []int{2 * m.Stride}, []int{cols, rows}, 128)
	if err != nil {
		d.Fatal(err)
	}
	return t
}
