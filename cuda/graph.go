package cuda

// #include "driver.h"
import "C"

import "errors"

// Graph is work that was recorded instead of done.
type Graph struct {
	device *Device
	handle C.CUgraph
}

// Capture records what work asks for in the stream, and in streams that wait for an event
// of it and that it waits for at the end. Memory that the work names must be there when
// the graph is launched. While work runs nothing may wait for these streams.
func (s *Stream) Capture(work func() error) (*Graph, error) {
	// Relaxed: other modes bind the capture to a thread, and goroutines change theirs.
	if r := C.cuStreamBeginCapture_v2(s.device.context, s.handle, C.CU_STREAM_CAPTURE_MODE_RELAXED); r != 0 {
		return nil, s.device.failure(r, "cuStreamBeginCapture", "")
	}
	failed := work()
	g := &Graph{device: s.device}
	r := C.cuStreamEndCapture(s.device.context, s.handle, &g.handle) // in any case: the stream is of use again
	if failed != nil {
		if r == 0 {
			failed = errors.Join(failed, g.Close())
		}
		return nil, failed
	}
	if r != 0 {
		return nil, s.device.failure(r, "cuStreamEndCapture", "")
	}
	return g, nil
}

// Instantiate makes the graph ready for launches; the graph itself may be closed then.
func (g *Graph) Instantiate() (*GraphExec, error) {
	e := &GraphExec{device: g.device}
	if r := C.cuGraphInstantiateWithFlags(g.device.context, &e.handle, g.handle, 0); r != 0 {
		return nil, g.device.failure(r, "cuGraphInstantiateWithFlags", "")
	}
	return e, nil
}

// Close frees the graph.
func (g *Graph) Close() error {
	if r := C.cuGraphDestroy(g.device.context, g.handle); r != 0 {
		return g.device.failure(r, "cuGraphDestroy", "")
	}
	return nil
}

// GraphExec is a graph that can be launched, again and again.
type GraphExec struct {
	device *Device
	handle C.CUgraphExec
}

// Upload does what the first launch would do beforehand.
func (e *GraphExec) Upload(s *Stream) error {
	if r := C.cuGraphUpload(e.device.context, e.handle, s.handle); r != 0 {
		return e.device.failure(r, "cuGraphUpload", "")
	}
	return nil
}

// Launch does the graph's work in the stream.
func (e *GraphExec) Launch(s *Stream) error {
	if r := C.cuGraphLaunch(e.device.context, e.handle, s.handle); r != 0 {
		return e.device.failure(r, "cuGraphLaunch", "")
	}
	return nil
}

// Update replaces the work by that of g: cheap where g has the same steps with other
// addresses, numbers and grids, a new instantiation where it has not.
func (e *GraphExec) Update(g *Graph) error {
	var result C.CUgraphExecUpdateResultInfo
	r := C.cuGraphExecUpdate_v2(e.device.context, e.handle, g.handle, &result)
	if r == 0 {
		return nil
	}
	if r != C.CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE {
		return e.device.failure(r, "cuGraphExecUpdate", "")
	}
	fresh, err := g.Instantiate()
	if err != nil {
		return err
	}
	if err := e.Close(); err != nil {
		return errors.Join(err, fresh.Close())
	}
	*e = *fresh
	return nil
}

// Close frees the graph's instance once its launches are done; it does not wait.
func (e *GraphExec) Close() error {
	if r := C.cuGraphExecDestroy(e.device.context, e.handle); r != 0 {
		return e.device.failure(r, "cuGraphExecDestroy", "")
	}
	return nil
}
