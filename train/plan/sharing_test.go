package plan

import (
	"iter"
	"slices"
	"strings"
	"testing"
)

// 90,000 tuples, twelve a question, of two continuations of 40 tokens on a prompt of
// 1,500: 277 million tokens one by one and 18 million as trees; at 43.6 GFLOP a token
// and 40 % of 989 TFLOP/s 8.5 hours or 34 minutes on one card.
func TestSharing(t *testing.T) {
	const questions, tuples = 7500, 12
	texts := func(yield func(Text) bool) {
		text := Text{Prompt: strings.Repeat("p", 1500)}
		for i := range 2 * tuples {
			text.Continuations = append(text.Continuations, string(rune('A'+i))+strings.Repeat("c", 39))
		}
		for range questions / 100 { // the others are the same
			if !yield(text) {
				return
			}
		}
	}
	perByte := func(text string) []int32 { return bytesOfText(text) }
	s := Share(iter.Seq[Text](texts), perByte)
	near(t, "separate tokens", 100*s.Separate, 277e6, 2e-3)
	near(t, "packed tokens", 100*s.Packed, 18.45e6, 1e-9)
	p := makePlan(t, "9B", true, options(t, "H200", 1, 8192))
	p.SetSharing(s)
	// Sequences are shorter than those that 43.6 GFLOP hold for, by attention's share.
	near(t, "hours one by one", 100*s.SeparateHours, 8.5, 0.05)
	near(t, "hours packed", 100*s.PackedHours, 34.0/60, 0.05)
}

// Without a tokenizer, tokens are bytes / BytesPerToken.
func TestSharingEstimate(t *testing.T) {
	s := Share(slices.Values([]Text{{"1234567", []string{"1234567", "123456789abcde"}}}), nil)
	if !s.Estimated || s.Separate != 10 || s.Packed != 6 || s.Longest != 6 || s.Prompts != 1 || s.Sequences != 2 {
		t.Errorf("%+v", s)
	}
}
