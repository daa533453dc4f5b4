package report

import (
	"fmt"
	"strings"
)

// What is shown of sampled answers at most: groups of the last step written.
const (
	shownGroups = 8
	openGroups  = 2
)

// sampledView is the last samples of the first policy that has any.
type sampledView struct {
	Where  string
	Scale  []scaleStep
	Groups []sampledGroup
}

type sampledGroup struct {
	Question, DBID, Gold string
	Open                 bool
	Right                int
	Answers              []sampledAnswer
}

type sampledAnswer struct {
	Sample           int
	Verdict, Message string
	Clauses          []sampledClause
}

type sampledClause struct{ Class, Score, Advantage, Text string }

func sampledGroups(all []Policy) *sampledView {
	for _, p := range all {
		if len(p.Groups) == 0 {
			continue
		}
		step := p.Groups[len(p.Groups)-1].Step
		v := &sampledView{Where: fmt.Sprintf("%s, step %s", p.Name, Thousands(step)), Scale: probabilitySteps()}
		for _, g := range p.Groups {
			if g.Step == step && len(v.Groups) < shownGroups {
				v.Groups = append(v.Groups, g.shown(len(v.Groups) < openGroups))
			}
		}
		return v
	}
	return nil
}

// probabilitySteps is the scale of colours for probabilities.
func probabilitySteps() []scaleStep {
	steps := append([]scaleStep(nil), scaleSteps...)
	steps[0].Label, steps[scaleHalf].Label, steps[2*scaleHalf].Label = "0", "½", "1"
	return steps
}

func (g Group) shown(open bool) sampledGroup {
	s := sampledGroup{Question: g.Question, DBID: g.DBID, Gold: g.Gold, Open: open}
	for _, a := range g.Answers {
		if a.Verdict == "correct" {
			s.Right++
		}
		out := sampledAnswer{Sample: a.Sample, Verdict: a.Verdict, Message: a.Message}
		for _, c := range a.Clauses {
			out.Clauses = append(out.Clauses, c.shown())
		}
		if len(a.Clauses) == 0 {
			out.Clauses = []sampledClause{{Class: "mid", Text: a.SQL}}
		}
		s.Answers = append(s.Answers, out)
	}
	return s
}

func (c RewardedClause) shown() sampledClause {
	s := sampledClause{Class: "mid", Text: strings.TrimSpace(c.Text)}
	if c.Score != nil {
		s.Class, s.Score = scaleClass(*c.Score-0.5, 0.5), fmt.Sprintf("%.2f", *c.Score)
	}
	if c.Advantage != nil {
		s.Advantage = fmt.Sprintf("%+.2f", *c.Advantage)
	}
	return s
}
