// Package dialect holds the language that CUDA kernels are written in.
//
// Kernel texts (kernels/<operator>/op.cu) include dialect.cuh and nothing else. It
// declares and documents every primitive: bf16 conversions, packed loads, barriers,
// asynchronous copies, matrix fragments, mbarriers, bulk copies by tensor maps, and
// the products of Hopper's warpgroups. device.cuh implements them in PTX with no
// header of the CUDA toolkit, so that NVRTC compiles a kernel on a machine that holds
// nothing else. package emulator implements the same declarations in C++.
package dialect

import _ "embed"

// Header is a file that kernel texts, or other headers, include by its name.
type Header struct{ Name, Text string }

//go:embed dialect.cuh
var dialect string

//go:embed device.cuh
var device string

// Language is dialect.cuh: the declarations, and what is written in them.
var Language = Header{"dialect.cuh", dialect}

// Device returns the headers that NVRTC needs, in a fixed order.
func Device() []Header { return []Header{Language, {"device.cuh", device}} }
