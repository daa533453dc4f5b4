package engine

import "testing"

func TestMachineMemory(t *testing.T) {
	if n := MachineMemory(); n < 1e8 {
		t.Errorf("%d bytes", n)
	}
}
