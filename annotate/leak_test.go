package annotate

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"caper/data"
	"caper/data/sample"

	"github.com/sqlc-dev/meyer/lexer"
	"github.com/sqlc-dev/meyer/token"
)

// leakBound is the largest share of same-length pairs whose right side the looks
// of both may tell: half by chance, and five points for what looks and contents
// have in common.
const leakBound = 0.55

// TestNoStyleLeak: a reward model must not learn to tell chosen from rejected by
// how they are written. A logistic classifier sees nothing but the difference of
// both units' looks, learns from the pairs of some databases and judges those of
// others. Pairs of one length in bytes count: a longer clause is no style. With the
// letters of literals it tells more, which is only reported: where 'usa' for 'USA' is
// the fault, these letters are what was wrong.
func TestNoStyleLeak(t *testing.T) {
	skipWalk(t)
	for _, c := range []struct {
		name, source string
		share        int // one rollout in so many
		open         func(t *testing.T) (*data.Benchmark, string, string)
	}{
		{"sample", sourceInjection, 1, sampleRollouts},
		{"sample", sourceCounterfactual, 1, sampleRollouts},
		{"spider", sourceInjection, 8, spiderRollouts},
		{"spider", sourceCounterfactual, 1, spiderRollouts},
	} {
		t.Run(c.name+"/"+c.source, func(t *testing.T) {
			bench, path, split := c.open(t)
			o := DefaultOptions()
			o.Injection, o.Counterfactual = c.source == sourceInjection, c.source == sourceCounterfactual
			var pairs []pairLooks
			_, err := Run(t.Context(), bench, every(c.share, withRows(bench, data.ReadRollouts(path, bench, split))), o, func(tuple data.Tuple) error {
				pairs = append(pairs, looksOfPair(tuple))
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			all, weights := leak(pairs)
			t.Logf("all: %.1f %% of %d pairs; %s", 100*all, len(pairs), weights)
			same := slices.DeleteFunc(pairs, func(p pairLooks) bool { return !p.sameLength })
			lettered, _ := leak(same)
			for i := range same {
				same[i].difference = same[i].difference[:len(lookNames)-literalLooks]
			}
			share, weights := leak(same)
			t.Logf("with the letters of literals: %.1f %%", 100*lettered)
			t.Logf("same length: %.1f %% of %d pairs; %s", 100*share, len(same), weights)
			if len(same) < 150 {
				t.Errorf("only %d pairs of one length", len(same))
			}
			if share > leakBound {
				t.Errorf("looks alone tell chosen from rejected in %.1f %% of %d same-length pairs", 100*share, len(same))
			}
		})
	}
}

// spiderRollouts are published predictions on Spider dev.
func spiderRollouts(t *testing.T) (*data.Benchmark, string, string) {
	return openShared(t, "spider"), shared(t, "predictions", "spider_dev.jsonl"), "dev"
}

// TestLeakIsFound: the classifier does find a style that gives the right side
// away in a fifth of the pairs.
func TestLeakIsFound(t *testing.T) {
	var pairs []pairLooks
	for i := range 1000 {
		tuple := data.Tuple{DBID: fmt.Sprint(i % 20), Chosen: "WHERE a = 1 AND b < 2", Rejected: "WHERE a = 1 AND b > 2"}
		if i%5 == 0 {
			tuple.Rejected = "where a = 1 and b > 2"
		}
		pairs = append(pairs, looksOfPair(tuple))
	}
	if share, _ := leak(pairs); share < 0.58 {
		t.Errorf("a fifth of the pairs give themselves away, %.1f %% are told", 100*share)
	}
}

// sampleRollouts writes a small built-in benchmark.
func sampleRollouts(t *testing.T) (*data.Benchmark, string, string) {
	dir := filepath.Join(t.TempDir(), "bench")
	o := sample.DefaultOptions()
	o.TrainDatabases, o.TestDatabases, o.NewWordsDatabases, o.LargeEvery = 40, 0, 0, 0
	if _, err := sample.Write(context.Background(), dir, o); err != nil {
		t.Fatal(err)
	}
	r := sample.DefaultRolloutOptions()
	r.Splits = []string{sample.Train}
	if _, err := sample.WriteRollouts(context.Background(), dir, r); err != nil {
		t.Fatal(err)
	}
	bench, err := data.OpenBenchmark(dir, "auto")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { bench.Close() })
	bench.Limits.Timeout = time.Second // some candidates are endless
	return bench, sample.RolloutPath(dir, sample.Train), sample.Train
}

// openShared opens a benchmark of the shared test data.
func openShared(t testing.TB, name string) *data.Benchmark {
	bench, err := data.OpenBenchmark(shared(t, name), name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { bench.Close() })
	return bench
}

// pairLooks is the difference of the looks of chosen and rejected.
type pairLooks struct {
	db         string
	sameLength bool
	difference []float64
}

func looksOfPair(t data.Tuple) pairLooks {
	chosen, rejected := looksOf(t.Chosen), looksOf(t.Rejected)
	p := pairLooks{db: t.DBID, sameLength: len(t.Chosen) == len(t.Rejected), difference: make([]float64, len(lookNames))}
	for i, name := range lookNames {
		a, hasA := chosen[name]
		b, hasB := rejected[name]
		if hasA && hasB { // a share of nothing says nothing
			p.difference[i] = a - b
		}
	}
	return p
}

// lookNames are shares of the tokens that may look one way or another, then
// counts.
var lookNames = []string{
	"upper keywords", "upper functions", "capitals in names", "numbered aliases", "upper aliases", "qualified names", "AS before aliases",
	"space before operators", "space behind operators", "space before commas", "space behind commas", "space inside parentheses",
	"double quotes", "quoted names", "<> for !=", "INNER before JOIN", "ASC", "several spaces", "line ends",
	"space ahead", "space at the end", "semicolon", "parentheses", "bytes", "tokens",
	"capitals in literals", "literals that begin with a capital",
}

// literalLooks are the last of lookNames: the letters of literals.
const literalLooks = 2

var (
	numberedAlias = regexp.MustCompile(`^[A-Za-z]\d+$`)
	lettersOnly   = regexp.MustCompile(`\PL`)
)

// looksOf describes how a unit is written. Shares of what the unit lacks are left
// out.
func looksOf(text string) map[string]float64 {
	seen, marked := make(map[string]float64), make(map[string]float64)
	look := func(name string, isMarked bool) {
		seen[name]++
		if isMarked {
			marked[name]++
		}
	}
	lookLetters := func(word string) {
		letters := lettersOnly.ReplaceAllString(word, "")
		for _, c := range letters {
			look("capitals in literals", unicode.IsUpper(c))
		}
		if first, _ := utf8.DecodeRuneInString(letters); letters != "" {
			look("literals that begin with a capital", unicode.IsUpper(first))
		}
	}
	tokens := lexer.Lex(text)
	tokens = tokens[:len(tokens)-1] // the end
	for i, tok := range tokens {
		word, before, behind := text[tok.Pos:tok.End], "", ""
		if i > 0 {
			before = text[tokens[i-1].End:tok.Pos]
			look("several spaces", len(before) > 1)
			if before != "" {
				look("line ends", strings.Contains(before, "\n"))
			}
		}
		if i+1 < len(tokens) {
			behind = text[tok.End:tokens[i+1].Pos]
		}
		is := func(j int, k token.Kind) bool { return j >= 0 && j < len(tokens) && tokens[j].Kind == k }
		isName := tok.Kind == token.ID
		switch {
		case isName && (word[0] == '"' || word[0] == '`' || word[0] == '['):
			look("quoted names", true)
			look("double quotes", word[0] == '"')
			if word[0] == '"' {
				lookLetters(word)
			}
		case isName && is(i+1, token.LP):
			look("upper functions", word == strings.ToUpper(word))
		case isName:
			look("quoted names", false)
			look("capitals in names", word != strings.ToLower(word))
			if is(i+1, token.DOT) {
				look("numbered aliases", numberedAlias.MatchString(word))
				look("upper aliases", word == strings.ToUpper(word))
			}
			look("qualified names", is(i-1, token.DOT))
			if is(i-1, token.ID) || is(i-1, token.AS) {
				look("AS before aliases", is(i-1, token.AS))
			}
		case tok.Kind == token.STRING:
			look("double quotes", false)
			lookLetters(word)
		case tok.Kind == token.COMMA:
			look("space before commas", before != "")
			look("space behind commas", behind != "")
		case tok.Kind == token.LP:
			look("space inside parentheses", behind != "")
		case tok.Kind == token.RP:
			look("space inside parentheses", before != "")
		case tok.Kind == token.EQ, tok.Kind == token.NE, tok.Kind == token.LT, tok.Kind == token.LE, tok.Kind == token.GT, tok.Kind == token.GE,
			tok.Kind == token.PLUS, tok.Kind == token.MINUS, tok.Kind == token.SLASH:
			look("space before operators", before != "")
			look("space behind operators", behind != "")
			if tok.Kind == token.NE {
				look("<> for !=", word == "<>")
			}
		case word != "" && (word[0]|0x20) >= 'a' && (word[0]|0x20) <= 'z':
			look("upper keywords", word == strings.ToUpper(word))
			if tok.Kind == token.JOIN {
				look("INNER before JOIN", i > 0 && strings.EqualFold(text[tokens[i-1].Pos:tokens[i-1].End], "inner"))
			}
		}
	}
	looks := make(map[string]float64)
	for name, n := range seen {
		looks[name] = marked[name] / n
	}
	for name, count := range map[string]int{
		"ASC":              strings.Count(strings.ToLower(text), " asc"),
		"space ahead":      len(text) - len(strings.TrimLeft(text, " \n\t")),
		"space at the end": len(text) - len(strings.TrimRight(text, " \n\t")),
		"semicolon":        strings.Count(text, ";"),
		"parentheses":      strings.Count(text, "("),
		"bytes":            len(text), "tokens": len(tokens),
	} {
		looks[name] = float64(count)
	}
	return looks
}

// leak fits a logistic classifier on the pairs of half of the databases, judges
// those of the other half, and the other way round. It returns the share that is
// told right, indifference counting half, and the weightiest looks of the last fit.
func leak(pairs []pairLooks) (share float64, weights string) {
	halves := make([][]pairLooks, 2)
	for _, p := range pairs {
		h := fnv.New32a()
		h.Write([]byte(p.db))
		half := h.Sum32() % 2
		halves[half] = append(halves[half], p)
	}
	right := 0.0
	var w []float64
	for half, test := range halves {
		w = fitPairs(halves[1-half])
		for _, p := range test {
			switch score := dot(w, p.difference); {
			case score > 1e-9:
				right++
			case score > -1e-9:
				right += 0.5
			}
		}
	}
	order := make([]int, len(w))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(math.Abs(w[b]), math.Abs(w[a])) })
	for _, i := range order[:4] {
		weights += fmt.Sprintf("%s %+.2f, ", lookNames[i], w[i])
	}
	return right / float64(len(pairs)), strings.TrimSuffix(weights, ", ")
}

// fitPairs maximises the mean of log sigmoid(w x) - |w|^2/1000 over the pairs'
// differences, each scaled to unit deviation, by gradient ascent; the weights
// are those of the unscaled differences.
func fitPairs(pairs []pairLooks) []float64 {
	if len(pairs) == 0 {
		return nil
	}
	scale := make([]float64, len(pairs[0].difference))
	for _, p := range pairs {
		for i, x := range p.difference {
			scale[i] += x * x / float64(len(pairs))
		}
	}
	for i := range scale {
		scale[i] = math.Sqrt(scale[i]) + 1e-6
	}
	w, gradient := make([]float64, len(scale)), make([]float64, len(scale))
	for range 300 {
		for i := range gradient {
			gradient[i] = -w[i] / 500
		}
		for _, p := range pairs {
			score := 0.0
			for i, x := range p.difference {
				score += w[i] * x / scale[i]
			}
			miss := 1 / (1 + math.Exp(score)) / float64(len(pairs))
			for i, x := range p.difference {
				gradient[i] += miss * x / scale[i]
			}
		}
		for i := range w {
			w[i] += gradient[i]
		}
	}
	for i := range w {
		w[i] /= scale[i]
	}
	return w
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}
