// Package emulator runs CUDA kernels on the CPU, to prove them where no GPU is.
//
// It compiles kernel texts, written in the language of package dialect, with g++ into
// a shared library and runs them block by block, each CUDA thread on a stack of its
// own. Threads are switched only where they wait for each other, in an order drawn
// from a seed: equal bits over several seeds show that a kernel is deterministic.
//
//	lib, err := emulator.Build(ctx, emulator.Options{}, emulator.Source{Name: "sum.cu", Text: text})
//	sum, err := lib.Kernel("block_sum")
//	x, err := emulator.Alloc(4 * n)
//	err = sum.Launch(emulator.Launch{Grid: [3]int{8}, Block: [3]int{256}}, x, out, int32(n))
//
// What a kernel does wrong comes back as a *Fault that names kernel, source line,
// block and thread. Memory is NaN until written and ends at an unmapped page;
// asynchronous copies and products land only when they are waited for, and their
// destinations hold NaN until then.
//
// Not modelled are time, occupancy, bank conflicts, clusters, the rounding inside matrix
// units and the card's weak order of memory. Blocks run one after the other and threads
// are not interrupted: a thread that spins on memory until another one writes it never ends.
//
// A built library is self-contained. Its C interface, in emulator.h, lets a stand-in
// for libcuda launch the same kernels by name: dlopen Library.Path, then
// caper_emu_kernels for names and parameter layouts, caper_emu_run with
// cuLaunchKernel's array of parameter pointers, caper_emu_alloc and caper_emu_free for
// memory, caper_emu_tensor_map for cuTensorMapEncodeTiled.
package emulator
