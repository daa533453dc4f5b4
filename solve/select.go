package solve

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"caper/data"
)

// Method is how far the selector goes; each is an ablation of the last (sirius.md 2.6).
type Method string

const (
	// Majority: the answer that most candidates give. Nothing is known of an empty one.
	Majority Method = "majority"
	// ByConsensus: the best S_maj.
	ByConsensus Method = "s_maj"
	// ByReward: the best S_rm.
	ByReward Method = "s_rm"
	// BySum: the best S_maj + S_rm.
	BySum Method = "sum"
	// Gated: BySum, and where that is close the structure decides.
	Gated Method = "sum+gate"
)

// Options of a Selector; DefaultOptions has the values of sirius.md.
type Options struct {
	Method    Method
	Consensus Consensus
	// Margin is tau_m: a lead of less is none, and structure decides.
	Margin float64
	// MaxJudged is M: how many classes, by votes, the judge sees.
	MaxJudged int
	// Judge compares answers; nil: none, and S_rm is 0.5 everywhere.
	Judge Judge
}

// DefaultOptions returns tau_m 0.05, M 5, Jaccard.
func DefaultOptions() Options {
	return Options{Method: Gated, Consensus: Jaccard, Margin: 0.05, MaxJudged: 5}
}

// Class is the candidates that give one answer.
type Class struct {
	State   State
	Members []int // indexes of candidates
	// Votes is the number of members, Groups of their provenance groups.
	Votes, Groups int
	// Representative is the member in most groups by the wording of its query, then the
	// shortest.
	Representative int
	// Consensus is S_maj, Reward S_rm, Score what decides.
	Consensus, Reward, Score float64
	// Support is the number of groups of Shape, the best supported structure among the
	// members; it is found where structure decides.
	Support int
	Shape   string

	answer answer
}

// Stage is what decided.
type Stage string

const (
	// OnlyClass: all candidates that count give one answer.
	OnlyClass Stage = "only-class"
	// Coarse: the best score leads by the margin.
	Coarse Stage = "coarse"
	// Structure: the most widely supported structure among the close ones.
	Structure Stage = "structure"
	// NoConsensus: no candidate ran, so there is no answer to vote on, and the most
	// widely supported structure is taken.
	NoConsensus Stage = "no-consensus"
)

// Decision is which candidate was taken, and why.
type Decision struct {
	Question   data.Question
	Candidates []Examined
	Classes    []Class // best first; candidates that do not count are in none
	Chosen     int     // index of a candidate
	Stage      Stage
	// Margin is the lead of the best class over the second, 1 where there is none.
	Margin float64
	// Close is how many classes, from the best one on, structure chose among.
	Close int
	Cost  Cost
}

// Select chooses one of a question's candidates, of which there has to be one. The
// order in which they come changes nothing. The error is ctx's.
func Select(ctx context.Context, q data.Question, candidates []Examined, o Options) (Decision, error) {
	d := Decision{Question: q, Candidates: candidates, Margin: 1}
	if len(candidates) == 0 {
		return d, fmt.Errorf("question %s has no candidates", q.ID)
	}
	d.classify(o)
	if err := d.score(ctx, o); err != nil {
		return d, err
	}
	d.rank()
	d.decide(o)
	return d, nil
}

// counted are the states of candidates that take part: the clean ones; without any,
// those whose result says nothing; without any, all. To plain majority all results
// are alike.
func counted(candidates []Examined, m Method) func(State) bool {
	tiers := []func(State) bool{func(s State) bool { return s == Clean }, State.ran}
	if m == Majority {
		tiers = tiers[1:]
	}
	for _, tier := range tiers {
		if slices.ContainsFunc(candidates, func(x Examined) bool { return tier(x.State) }) {
			return tier
		}
	}
	return func(State) bool { return true }
}

// classify groups the candidates that count: by answer, or by structure where nothing
// ran.
func (d *Decision) classify(o Options) {
	counts := counted(d.Candidates, o.Method)
	reader := newAnswers(asksForOrder(d.Question.Question))
	place := map[string]int{}
	for i := range d.Candidates {
		x := &d.Candidates[i]
		if !counts(x.State) {
			continue
		}
		var own answer
		if x.Result != nil {
			own = reader.of(x.Result)
		} else {
			own.signature = "shape:" + x.shape
		}
		at, known := place[own.signature]
		if !known {
			at = len(d.Classes)
			place[own.signature] = at
			d.Classes = append(d.Classes, Class{State: x.State, Reward: tied, answer: own})
		}
		c := &d.Classes[at]
		c.Members = append(c.Members, i)
	}
	for i := range d.Classes {
		c := &d.Classes[i]
		c.Votes, c.Groups = len(c.Members), d.groups(c.Members)
		c.Representative = d.representative(c.Members)
	}
}

// groups counts the provenance groups of some candidates.
func (d *Decision) groups(members []int) int {
	groups := map[string]bool{}
	for _, i := range members {
		groups[d.Candidates[i].Group()] = true
	}
	return len(groups)
}

// representative is the member that most groups wrote, in whatever words; then the
// shortest, then the first in the alphabet.
func (d *Decision) representative(members []int) int {
	wrote := map[string][]int{}
	for _, i := range members {
		statement := d.Candidates[i].statement
		wrote[statement] = append(wrote[statement], i)
	}
	groups := map[string]int{}
	for statement, by := range wrote {
		groups[statement] = d.groups(by)
	}
	return slices.MinFunc(members, func(i, j int) int {
		a, b := &d.Candidates[i], &d.Candidates[j]
		return cmp.Or(groups[b.statement]-groups[a.statement], shorter(a, b))
	})
}

// shorter orders candidates by length, then text, then origin.
func shorter(a, b *Examined) int {
	return cmp.Or(cmp.Compare(len(a.SQL), len(b.SQL)), strings.Compare(a.SQL, b.SQL), a.compare(&b.Candidate))
}

// score fills in the scores of the classes.
func (d *Decision) score(ctx context.Context, o Options) error {
	for i, s := range consensus(d.Classes, o.Consensus) {
		d.Classes[i].Consensus = s
	}
	needsJudge := o.Method != Majority && o.Method != ByConsensus && o.Judge != nil && len(d.Classes) > 1
	if needsJudge {
		if err := d.judge(ctx, o); err != nil {
			return err
		}
	}
	for i := range d.Classes {
		c := &d.Classes[i]
		switch o.Method {
		case Majority:
			c.Score = float64(c.Votes)
		case ByConsensus:
			c.Score = c.Consensus
		case ByReward:
			c.Score = c.Reward
		default:
			c.Score = c.Consensus + c.Reward
		}
	}
	return nil
}

// rank sorts the classes: best score first, then most votes and groups, then the
// shortest representative.
func (d *Decision) rank() {
	slices.SortFunc(d.Classes, func(a, b Class) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), b.Votes-a.Votes, b.Groups-a.Groups,
			shorter(&d.Candidates[a.Representative], &d.Candidates[b.Representative]))
	})
	if len(d.Classes) > 1 {
		d.Margin = d.Classes[0].Score - d.Classes[1].Score
	}
}

// decide takes the best class, unless others are close and structure has its say.
func (d *Decision) decide(o Options) {
	best := &d.Classes[0]
	d.Chosen, d.Stage, d.Close = best.Representative, Coarse, 1
	switch {
	case !best.State.ran():
		d.Stage, d.Close = NoConsensus, len(d.Classes)
	case len(d.Classes) == 1:
		d.Stage = OnlyClass
		return
	case o.Method == Gated && d.Margin < o.Margin && 2*best.Votes <= d.votes():
		d.Stage = Structure
		for d.Close < len(d.Classes) && best.Score-d.Classes[d.Close].Score < o.Margin {
			d.Close++
		}
	default:
		return
	}
	d.Chosen = d.bySupport(d.Classes[:d.Close])
}

// votes is the number of candidates that count.
func (d *Decision) votes() (n int) {
	for _, c := range d.Classes {
		n += c.Votes
	}
	return n
}

// bySupport is the candidate, of some classes, whose structure most provenance groups
// of the pool wrote; then of the best score, then the shortest.
func (d *Decision) bySupport(classes []Class) int {
	supporters := map[string][]int{} // by shape
	for _, c := range d.Classes {
		for _, i := range c.Members {
			supporters[d.Candidates[i].shape] = append(supporters[d.Candidates[i].shape], i)
		}
	}
	chosen, score, support := -1, 0.0, 0
	for k := range classes {
		c := &classes[k]
		for _, i := range c.Members {
			x := &d.Candidates[i]
			own := d.groups(supporters[x.shape])
			if own > c.Support {
				c.Support, c.Shape = own, x.shape
			}
			if chosen < 0 || cmp.Or(own-support, cmp.Compare(c.Score, score), shorter(&d.Candidates[chosen], x)) > 0 {
				chosen, score, support = i, c.Score, own
			}
		}
	}
	return chosen
}
