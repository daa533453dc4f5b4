// Package tensorboard writes the metrics of a run as an event file that TensorBoard
// shows: a scalar for every number, a histogram for every list of counts.
//
// An event file is a row of TFRecords (tensorflow/core/lib/io/record_writer.h): length as
// uint64, masked CRC of these 8 bytes, payload, masked CRC of the payload, all little
// endian. A payload is a protobuf message Event (tensorflow/core/util/event.proto) with a
// Summary (framework/summary.proto); the few fields needed are written here by hand.
package tensorboard

import (
	"encoding/binary"
	"hash/crc32"
	"io"
	"math"
	"time"

	"caper/report/series"
)

// Writer writes events.
type Writer struct {
	out  io.Writer
	text []byte
}

// NewWriter begins an event file.
func NewWriter(out io.Writer, at time.Time) (*Writer, error) {
	w := &Writer{out: out}
	return w, w.record(str(event(at, 0), 3, "brain.Event:2"))
}

// Write writes a line as one event.
func (w *Writer) Write(at time.Time, line series.Line) error {
	var summary []byte
	for _, v := range line.Values {
		summary = block(summary, 1, scalar(v))
	}
	for _, c := range line.Counts {
		summary = block(summary, 1, histogram(c))
	}
	if summary == nil {
		return nil
	}
	return w.record(block(event(at, line.Step), 5, summary))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// masked is the CRC of a text, changed so that it may itself stand in one that has a CRC.
func masked(text []byte) uint32 {
	crc := crc32.Checksum(text, castagnoli)
	return (crc>>15 | crc<<17) + 0xa282ead8
}

// record appends a payload as a TFRecord, in one write.
func (w *Writer) record(payload []byte) error {
	t := binary.LittleEndian.AppendUint64(w.text[:0], uint64(len(payload)))
	t = binary.LittleEndian.AppendUint32(t, masked(t))
	t = append(t, payload...)
	w.text = binary.LittleEndian.AppendUint32(t, masked(payload))
	_, err := w.out.Write(w.text)
	return err
}

// event begins an Event: wall_time = 1 in seconds, step = 2.
func event(at time.Time, step int) []byte {
	m := double(nil, 1, float64(at.UnixMicro())/1e6)
	return binary.AppendUvarint(tag(m, 2, varint), uint64(step))
}

// scalar is a Summary.Value: tag = 1, simple_value = 2.
func scalar(v series.Value) []byte {
	m := tag(str(nil, 1, v.Name), 2, fixed32)
	return binary.LittleEndian.AppendUint32(m, math.Float32bits(float32(v.Number)))
}

// histogram is a Summary.Value with histo = 5, a HistogramProto: min = 1, max = 2, num =
// 3, sum = 4, sum_squares = 5, bucket_limit = 6, bucket = 7. The bucket of i ends half way
// to i+1.
func histogram(c series.Counts) []byte {
	var n, sum, squares float64
	var limits, buckets []byte
	for i, count := range c.Counts {
		x := float64(i)
		n, sum, squares = n+count, sum+x*count, squares+x*x*count
		limits = binary.LittleEndian.AppendUint64(limits, math.Float64bits(x+0.5))
		buckets = binary.LittleEndian.AppendUint64(buckets, math.Float64bits(count))
	}
	var m []byte
	for i, x := range []float64{-0.5, float64(len(c.Counts)) - 0.5, n, sum, squares} {
		m = double(m, i+1, x)
	}
	m = block(block(m, 6, limits), 7, buckets)
	return block(str(nil, 1, c.Name), 5, m)
}

// Wire types of protobuf.
const (
	varint  = 0
	fixed64 = 1
	counted = 2
	fixed32 = 5
)

func tag(m []byte, field, wire int) []byte { return append(m, byte(field<<3|wire)) }

func double(m []byte, field int, x float64) []byte {
	return binary.LittleEndian.AppendUint64(tag(m, field, fixed64), math.Float64bits(x))
}

func block(m []byte, field int, value []byte) []byte {
	return append(binary.AppendUvarint(tag(m, field, counted), uint64(len(value))), value...)
}

func str(m []byte, field int, value string) []byte { return block(m, field, []byte(value)) }
