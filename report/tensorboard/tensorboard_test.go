package tensorboard

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"

	"caper/report/series"
)

// crc is CRC-32C bit by bit (RFC 3720, appendix B.4), masked as TFRecord asks.
func crc(text []byte) uint32 {
	c := ^uint32(0)
	for _, b := range text {
		c ^= uint32(b)
		for range 8 {
			c = c>>1 ^ 0x82f63b78*(c&1)
		}
	}
	c = ^c
	return (c>>15 | c<<17) + 0xa282ead8
}

// RFC 3720's values before masking: 32 bytes of zeros, of ones, and counting up.
func TestMaskedCRC(t *testing.T) {
	unmask := func(m uint32) uint32 { m -= 0xa282ead8; return m>>17 | m<<15 }
	texts := map[uint32]func(i int) byte{
		0x8a9136aa: func(int) byte { return 0 }, 0x62a8ab43: func(int) byte { return 0xff }, 0x46dd794e: func(i int) byte { return byte(i) },
	}
	for want, at := range texts {
		text := make([]byte, 32)
		for i := range text {
			text[i] = at(i)
		}
		if got := unmask(masked(text)); got != want {
			t.Errorf("CRC %08x, want %08x", got, want)
		}
		if masked(text) != crc(text) {
			t.Errorf("the two CRCs differ")
		}
	}
}

// message is a protobuf message as read by its wire format alone: by field, the numbers
// and the bytes in order.
type message struct {
	bytes   map[protowire.Number][][]byte
	numbers map[protowire.Number]float64
}

func parse(t *testing.T, text []byte) message {
	t.Helper()
	m := message{map[protowire.Number][][]byte{}, map[protowire.Number]float64{}}
	for len(text) > 0 {
		field, wire, n := protowire.ConsumeTag(text)
		if n < 0 {
			t.Fatal(protowire.ParseError(n))
		}
		text = text[n:]
		switch wire {
		case protowire.VarintType:
			v, k := protowire.ConsumeVarint(text)
			m.numbers[field], n = float64(v), k
		case protowire.Fixed32Type:
			v, k := protowire.ConsumeFixed32(text)
			m.numbers[field], n = float64(math.Float32frombits(v)), k
		case protowire.Fixed64Type:
			v, k := protowire.ConsumeFixed64(text)
			m.numbers[field], n = math.Float64frombits(v), k
		case protowire.BytesType:
			v, k := protowire.ConsumeBytes(text)
			m.bytes[field], n = append(m.bytes[field], v), k
		default:
			t.Fatalf("field %d has wire type %d", field, wire)
		}
		if n < 0 {
			t.Fatal(protowire.ParseError(n))
		}
		text = text[n:]
	}
	return m
}

func records(t *testing.T, text []byte) []message {
	t.Helper()
	var all []message
	for len(text) > 0 {
		n := binary.LittleEndian.Uint64(text)
		if got := binary.LittleEndian.Uint32(text[8:]); got != crc(text[:8]) {
			t.Fatalf("record %d: CRC of the length", len(all))
		}
		payload := text[12 : 12+n]
		if got := binary.LittleEndian.Uint32(text[12+n:]); got != crc(payload) {
			t.Fatalf("record %d: CRC of the payload", len(all))
		}
		all = append(all, parse(t, payload))
		text = text[16+n:]
	}
	return all
}

func doubles(t *testing.T, text []byte) []float64 {
	t.Helper()
	var all []float64
	for ; len(text) > 0; text = text[8:] {
		all = append(all, math.Float64frombits(binary.LittleEndian.Uint64(text)))
	}
	return all
}

func TestConvert(t *testing.T) {
	run, dir := t.TempDir(), t.TempDir()
	text := `{"step":1,"loss":0.5,"reward":{"GROUP BY":0.25}}
{"step":300,"group_correct":[3,0,1],"ex":0.75}
{"step":301,"note":"nothing to show"}
{"step":302,"lo`
	if err := os.WriteFile(filepath.Join(run, series.FileName), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for range 2 { // a second conversion replaces the first
		if n, err := Convert(run, dir); n != 3 || err != nil {
			t.Fatalf("%d lines, %v", n, err)
		}
	}
	file, err := os.ReadFile(filepath.Join(dir, FileName))
	if err != nil {
		t.Fatal(err)
	}
	events := records(t, file)
	if len(events) != 3 || string(events[0].bytes[3][0]) != "brain.Event:2" {
		t.Fatalf("%d events, the first %v", len(events), events[0])
	}
	got := map[string]float64{}
	for _, e := range events[1:] {
		if at := e.numbers[1]; at < 1.6e9 || at > 1e11 {
			t.Errorf("wall time %v s", at)
		}
		for _, v := range parse(t, e.bytes[5][0]).bytes[1] {
			value := parse(t, v)
			name := string(value.bytes[1][0])
			if value.bytes[5] == nil {
				got[name] = value.numbers[2] + 1000*e.numbers[2]
				continue
			}
			h := parse(t, value.bytes[5][0])
			if name != "group_correct" || !cmp.Equal(doubles(t, h.bytes[6][0]), []float64{.5, 1.5, 2.5}) || !cmp.Equal(doubles(t, h.bytes[7][0]), []float64{3, 0, 1}) {
				t.Errorf("histogram %s: %v", name, h)
			}
			// Of 0, 0, 0 and 2: four values, sum 2, sum of squares 4.
			if h.numbers[1] != -.5 || h.numbers[2] != 2.5 || h.numbers[3] != 4 || h.numbers[4] != 2 || h.numbers[5] != 4 {
				t.Errorf("histogram %s: %v", name, h.numbers)
			}
		}
	}
	if want := map[string]float64{"loss": 1000.5, "reward/GROUP BY": 1000.25, "ex": 300000.75}; !cmp.Equal(got, want) {
		t.Errorf("scalars %v, want %v", got, want)
	}
}

func TestFollowerBeginsAnewWithTheRun(t *testing.T) {
	run, dir := t.TempDir(), t.TempDir()
	metrics := filepath.Join(run, series.FileName)
	f := follower{metrics: series.NewReader(run), path: filepath.Join(dir, FileName)}
	defer f.close()
	steps := func(text string) (all []float64) {
		t.Helper()
		if err := os.WriteFile(metrics+".new", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(metrics+".new", metrics); err != nil {
			t.Fatal(err)
		}
		info, _ := os.Stat(metrics)
		if err := f.update(info.ModTime()); err != nil {
			t.Fatal(err)
		}
		file, err := os.ReadFile(f.path)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range records(t, file)[1:] {
			all = append(all, e.numbers[2])
		}
		return all
	}
	if got := steps("{\"step\":1,\"a\":1}\n{\"step\":2,\"a\":1}\n"); !cmp.Equal(got, []float64{1, 2}) {
		t.Fatal(got)
	}
	if got := steps("{\"step\":1,\"a\":1}\n"); !cmp.Equal(got, []float64{1}) {
		t.Fatal(got)
	}
}
