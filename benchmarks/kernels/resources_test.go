package kernels

import (
	"testing"

	"caper/engine"
)

// The table knows the blocks of every kernel.
func TestBlockSizes(t *testing.T) {
	sizes := blockSizes(engine.KernelSources())
	for kernel, want := range map[string]int{"adamw_step": 256, "policyloss_backward": 128, "attention_forward_hopper_256": 384, "deltarule_gradients": 256} {
		if sizes[kernel] != want {
			t.Errorf("%s: blocks of %d threads, want %d", kernel, sizes[kernel], want)
		}
	}
	for kernel, size := range sizes {
		if size%32 != 0 || size < 32 || size > 1024 {
			t.Errorf("%s: blocks of %d threads", kernel, size)
		}
	}
}
