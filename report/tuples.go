package report

import (
	"bufio"
	"cmp"
	"fmt"
	"hash/maphash"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"text/tabwriter"

	"caper/annotate"
	"caper/data"
	"caper/sql"
)

// Tuples counts a tuple file and keeps some of its tuples as examples. Its size
// does not depend on that of the file, but for 20 bytes or so a question.
type Tuples struct {
	Tuples    int `json:"tuples"`
	Questions int `json:"questions"`
	// Enclosing are those of clauses around the faulty one.
	Enclosing  int            `json:"enclosing"`
	ByDataset  map[string]int `json:"by_dataset"`
	BySplit    map[string]int `json:"by_split"`
	BySource   map[string]int `json:"by_source"`
	ByClause   map[string]int `json:"by_clause"`
	ByOperator map[string]int `json:"by_operator"`
	ByRootKind map[string]int `json:"by_root_kind"`
	ByDatabase map[string]int `json:"by_database"`
	// Margins is a histogram over (0, alpha], where alpha is the largest margin.
	Margins [annotate.MarginBins]int `json:"margins"`
	// Lengths in bytes of the prompt, the wrong query, and the two clauses.
	Lengths map[string]Lengths `json:"lengths"`

	examples  []example
	most      int
	random    *rand.Rand
	seed      maphash.Seed
	questions map[uint64]struct{}
	margins   map[float64]int
	lengths   map[string]map[int]int
}

// Lengths are quantiles, in bytes.
type Lengths struct {
	Least  int `json:"least"`
	Median int `json:"median"`
	P95    int `json:"p95"`
	Most   int `json:"most"`
}

type example struct {
	index int
	tuple data.Tuple
}

// NewTuples counts from nothing and keeps so many examples, drawn from all tuples
// alike. The draw is the same every time.
func NewTuples(examples int) *Tuples {
	return &Tuples{
		ByDataset: map[string]int{}, BySplit: map[string]int{}, BySource: map[string]int{}, ByClause: map[string]int{},
		ByOperator: map[string]int{}, ByRootKind: map[string]int{}, ByDatabase: map[string]int{},
		most: examples, random: rand.New(rand.NewPCG(1, 1)), seed: maphash.MakeSeed(), questions: map[uint64]struct{}{},
		margins: map[float64]int{}, lengths: map[string]map[int]int{},
	}
}

// Add counts a tuple.
func (c *Tuples) Add(t data.Tuple) {
	c.Tuples++
	c.questions[maphash.String(c.seed, t.DBID+"\x00"+t.QuestionID.String()+"\x00"+t.Question)] = struct{}{}
	if !t.RootClause {
		c.Enclosing++
	}
	for _, count := range []struct {
		of   map[string]int
		name string
	}{
		{c.ByDataset, t.Dataset}, {c.BySplit, t.Split}, {c.BySource, t.Source}, {c.ByClause, t.Clause},
		{c.ByOperator, t.Operator}, {c.ByRootKind, t.Root.Kind}, {c.ByDatabase, t.DBID},
	} {
		count.of[count.name]++
	}
	c.margins[t.Margin]++
	for name, text := range map[string]string{"prompt": t.Prompt, "query": t.SQLRejected, "chosen": t.Chosen, "rejected": t.Rejected} {
		if c.lengths[name] == nil {
			c.lengths[name] = map[int]int{}
		}
		c.lengths[name][len(text)]++
	}
	c.sample(t)
}

// sample keeps the tuple as an example with the chance that all have.
func (c *Tuples) sample(t data.Tuple) {
	e := example{c.Tuples, t}
	if len(c.examples) < c.most {
		c.examples = append(c.examples, e)
	} else if i := c.random.IntN(c.Tuples); i < c.most {
		c.examples[i] = e
	}
}

// Finish works out what can only be told from all tuples.
func (c *Tuples) Finish() {
	c.Questions = len(c.questions)
	alpha := 0.0
	for margin := range c.margins {
		alpha = max(alpha, margin)
	}
	for margin, n := range c.margins {
		bin := int(math.Ceil(margin/alpha*annotate.MarginBins)) - 1
		c.Margins[min(max(bin, 0), annotate.MarginBins-1)] += n
	}
	c.Lengths = map[string]Lengths{}
	for name, counts := range c.lengths {
		c.Lengths[name] = Lengths{quantile(counts, 0), quantile(counts, 0.5), quantile(counts, 0.95), quantile(counts, 1)}
	}
	slices.SortFunc(c.examples, func(a, b example) int { return cmp.Compare(a.index, b.index) })
}

// quantile is the smallest value that a share of the counted ones does not pass.
func quantile(counts map[int]int, share float64) int {
	total := 0
	for _, n := range counts {
		total += n
	}
	values := slices.Sorted(maps.Keys(counts))
	rank := int(math.Ceil(share * float64(total)))
	for _, v := range values {
		if rank -= counts[v]; rank <= 0 {
			return v
		}
	}
	return 0
}

// databasesShown is how many databases a table lists, those with the most tuples.
const databasesShown = 10

// Write prints the examples and the counts for people; colour is for terminals.
func (c *Tuples) Write(out io.Writer, colour bool) error {
	w := bufio.NewWriter(out)
	for _, e := range c.examples {
		writeExample(w, e.index, e.tuple, colour)
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "tuples\t%s\n", Thousands(c.Tuples))
	fmt.Fprintf(table, "... of enclosing clauses\t%s\n", outOf(c.Enclosing, c.Tuples))
	fmt.Fprintf(table, "questions\t%s\n", Thousands(c.Questions))
	fmt.Fprintf(table, "databases\t%s\n", Thousands(len(c.ByDatabase)))
	table.Flush()

	byRank := func(a, b string) int { return cmp.Compare(sql.ClauseKind(a).Rank(), sql.ClauseKind(b).Rank()) }
	writeBars(w, countBars("By dataset", c.ByDataset, nil))
	writeBars(w, countBars("By split", c.BySplit, nil))
	writeBars(w, countBars("By source", c.BySource, nil))
	writeBars(w, countBars("By clause", c.ByClause, byRank))
	writeBars(w, countBars("By operator", c.ByOperator, nil))
	writeBars(w, countBars("By kind of the root cause", c.ByRootKind, nil))
	databases := countBars("By database", c.ByDatabase, nil)
	if more := len(databases.Rows) - databasesShown; more > 0 {
		databases.Title = fmt.Sprintf("By database, the first %d of %d", databasesShown, len(databases.Rows))
		databases.Rows = databases.Rows[:databasesShown]
	}
	writeBars(w, databases)
	c.writeMargins(w)
	c.writeLengths(w)
	return w.Flush()
}

func (c *Tuples) writeMargins(out io.Writer) {
	const width = 40
	fullest := max(slices.Max(c.Margins[:]), 1)
	fmt.Fprintf(out, "\nMargins, in tenths of the largest\n")
	for i, n := range c.Margins {
		bar := strings.Repeat("#", (n*width+fullest-1)/fullest)
		fmt.Fprintln(out, strings.TrimRight(fmt.Sprintf("%11s  %.1f to %.1f  %s", Thousands(n), float64(i)/annotate.MarginBins, float64(i+1)/annotate.MarginBins, bar), " "))
	}
}

func (c *Tuples) writeLengths(out io.Writer) {
	fmt.Fprintf(out, "\nLengths in bytes\n")
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "\tleast\tmedian\t95 %%\tmost\t\n")
	for _, name := range []string{"prompt", "query", "chosen", "rejected"} {
		l := c.Lengths[name]
		fmt.Fprintf(table, "  %s\t%s\t%s\t%s\t%s\t\n", name, Thousands(l.Least), Thousands(l.Median), Thousands(l.P95), Thousands(l.Most))
	}
	table.Flush()
}
