package emulator_test

import (
	"fmt"
	"testing"

	"caper/cuda/emulator"
)

// BenchmarkSwitch gives the time in which one thread gives way to another at a barrier,
// and that of a lane in a shuffle, with threads in natural and in random order.
func BenchmarkSwitch(b *testing.B) {
	lib := build(b, false, "switches.cu")
	for _, name := range []string{"barriers", "shuffles"} {
		k := kernel(b, lib, name)
		for _, threads := range []int{32, 128, 256, 1024} {
			for _, seed := range []uint64{0, 1} {
				b.Run(fmt.Sprintf("%s/threads=%d/seed=%d", name, threads, seed), func(b *testing.B) {
					x, _ := alloc[float32](b, threads)
					n := max(b.N/threads, 1)
					if err := k.Launch(emulator.Launch{Block: [3]int{threads}, Seed: seed}, x, int32(n)); err != nil {
						b.Fatal(err)
					}
				})
			}
		}
	}
}

// BenchmarkLaunch gives the time of a launch of one block that does nothing.
func BenchmarkLaunch(b *testing.B) {
	k := kernel(b, build(b, false, "switches.cu"), "nothing")
	for _, threads := range []int{32, 256, 1024} {
		b.Run(fmt.Sprintf("threads=%d", threads), func(b *testing.B) {
			for b.Loop() {
				if err := k.Launch(emulator.Launch{Block: [3]int{threads}}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkExamples times the examples' launches without and with the checks for races.
func BenchmarkExamples(b *testing.B) {
	for _, e := range examples {
		for _, races := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/races=%t", e.kernel, races), func(b *testing.B) {
				lib := build(b, races, e.file)
				k := kernel(b, lib, e.kernel)
				args, _ := e.prepare(b, lib)
				for b.Loop() {
					if err := k.Launch(e.launch, args...); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
