// Package cuda drives NVIDIA GPUs through libraries that are opened at run time:
// libcuda (the driver), NVRTC (the compiler), cuBLASLt (matrix products), NCCL and
// NVTX. Nothing of the CUDA toolkit is needed to build or to start the program; a
// library that is not there is a *NotFoundError, which says where it was looked for
// and how to get it. Drivers of CUDA 12 and 13 work.
//
// The way through the package:
//
//	gpu, err := cuda.Open(0)                            // a Device: the GPU's primary context
//	stream, err := gpu.NewStream(cuda.NormalPriority)   // work is asked for in streams
//	cubin, err := compiler.Compile(source, gpu.Arch())  // NVRTC, cached on disk
//	module, err := gpu.Load(cubin)
//	kernel, err := module.Function("rmsnorm_forward")
//	x, err := stream.Alloc(bytes)
//	err = kernel.Launch(stream, launch, args.Reset().Ptr(x).Int32(n))
//	err = stream.Synchronize()
//
// Work in a stream runs in order and after the call has returned. An error of a kernel
// therefore comes from a later call on the same GPU.
//
// Any goroutine may make any call: each sets its thread's current context before it
// calls the driver. What a value refers to must stay in use by one goroutine at a time,
// unless its comment says more.
package cuda
