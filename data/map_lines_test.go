package data

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// square reads the field n and writes its square.
func square(o Extra) error {
	var n int
	if _, err := fmt.Sscan(string(o["n"]), &n); err != nil {
		return fmt.Errorf("field \"n\": %w", err)
	}
	o["square"] = fmt.Append(nil, n*n)
	return nil
}

// Any number of workers writes the lines in their order, and names the first faulty
// one.
func TestMapLines(t *testing.T) {
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
	padding := strings.Repeat("x", blockBytes/10)
	rapid.Check(t, func(t *rapid.T) {
		var text, want strings.Builder
		lines := rapid.IntRange(0, 60).Draw(t, "lines")
		faulty := rapid.SliceOfN(rapid.IntRange(0, 90), 0, 2).Draw(t, "faulty lines")
		first := 0
		for n := 1; n <= lines; n++ {
			switch {
			case len(faulty) > 0 && (n == faulty[0] || n == faulty[len(faulty)-1]):
				text.WriteString("{\"n\":\"?\"}\n")
				if first == 0 {
					first = n
				}
			case n%7 == 0:
				text.WriteString(" \n")
			default:
				fmt.Fprintf(&text, "{\"n\":%d,\"a\":\"<%s\"}\n", n, padding)
				fmt.Fprintf(&want, "{\"a\":\"<%s\",\"n\":%d,\"square\":%d}\n", padding, n, n*n)
			}
		}
		if err := os.WriteFile(in, []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		os.Remove(out)
		err := MapLines(t.Context(), in, out, rapid.IntRange(1, 4).Draw(t, "workers"), square)
		got, readErr := os.ReadFile(out)
		if first > 0 {
			if err == nil || !strings.HasPrefix(err.Error(), fmt.Sprintf("%s:%d: field", in, first)) || !os.IsNotExist(readErr) {
				t.Fatalf("error %v, want line %d; %v", err, first, readErr)
			}
			return
		}
		if err != nil || string(got) != want.String() {
			t.Fatalf("%v, %d bytes, want %d", err, len(got), want.Len())
		}
	})
}

func TestMapLinesStops(t *testing.T) {
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
	if err := os.WriteFile(in, []byte(strings.Repeat("{\"n\":1}\n", blockBytes)), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err := MapLines(ctx, in, out, 2, func(o Extra) error { cancel(); return square(o) })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want cancelled", err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("%d files are left over", len(left)-1)
	}
	for _, text := range []string{"null\n", "[]\n", "{\n"} {
		if err := os.WriteFile(in, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := MapLines(t.Context(), in, out, 1, square); err == nil || !strings.Contains(err.Error(), in+":1: want a JSON object") {
			t.Errorf("%q: error %v", text, err)
		}
	}
}
