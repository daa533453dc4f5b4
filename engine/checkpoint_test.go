package engine

import "testing"

// Of an inference pass that is cut into layers only each result stays, whatever
// block it lies in, and the memory of the layers is used again.
func TestInferenceKeepsOnlyResultsOfLayers(t *testing.T) {
	for _, dev := range []Device{CPU(1), Reference()} {
		for _, size := range []int{3, 1 << 19, 1<<20 + 5} { // elements: in a block, half of one, more than one
			tape := NewTape(dev)
			tape.Inference, tape.Poison = true, true
			kept := tape.Zeros(1, 7) // from before the layers
			x := tape.Zeros(1, size)
			var memory int
			for i := range 9 {
				x = tape.Layer(func() *Tensor {
					tape.New(1, 100)
					y := tape.New(1, size)
					for j := range size {
						y.Set(0, j, x.At(0, j)+float64(j%5))
					}
					tape.NewCheap(3, size)
					return y
				})
				if i == 2 {
					memory = tape.Bytes()
				}
			}
			if x.At(0, 0) != 0 || x.At(0, size-1) != float64(9*((size-1)%5)) || kept.At(0, 6) != 0 {
				t.Errorf("%s, %d elements: ends in %g and %g", dev.Name(), size, x.At(0, size-1), kept.At(0, 6))
			}
			if tape.Bytes() != memory {
				t.Errorf("%s, %d elements: %d bytes grew to %d", dev.Name(), size, memory, tape.Bytes())
			}
		}
	}
}

func TestLayersDoNotNest(t *testing.T) {
	tape := NewTape(Reference())
	defer func() {
		if recover() == nil {
			t.Error("a layer within a layer was accepted")
		}
	}()
	tape.Layer(func() *Tensor { return tape.Layer(func() *Tensor { return tape.New(1, 1) }) })
}

func TestCheckpointingNames(t *testing.T) {
	for _, name := range []string{"none", "selective", "full"} {
		if c, err := ParseCheckpointing(name); err != nil || c.String() != name {
			t.Errorf("%q is read as %v, %v", name, c, err)
		}
	}
	if _, err := ParseCheckpointing("half"); err == nil {
		t.Error(`"half" was accepted`)
	}
}
