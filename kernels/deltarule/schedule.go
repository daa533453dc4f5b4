package deltarule

import "caper/engine"

// schedule is the order in which a GPU takes a forest, or the steps of sequences that go on.
// Tasks are segments, level by level and, within one, in the tree's order, so that a
// segment's children follow each other. A task is cut into chunks; where something follows a
// chunk, there is a border, at which the backward pass keeps the state and its gradient.
type schedule struct {
	levels             []int32 // [levels+1]: the first task of each
	firstChunk         []int32 // [tasks+1]: the first chunk of each
	from, to           []int32 // [tasks]: the state that a task starts from and the one that it leaves; -1 for none
	chunkRow, chunkLen []int32 // [chunks]: rows
	before, after      []int32 // [chunks]: the borders at its ends, -1 for none

	// Backward, siblings that follow each other are a run: one after the other, they add up
	// the gradients of the state that they start from.
	runLevels []int32 // [levels+1]: the first run of each
	runs      []int32 // [runs+1]: the first task of each
	childRuns []int32 // [tasks+1]: the first run of a task's children

	states, borders int

	segments, level, children []int32 // the segments in order; by segment: its level, its children
	state, border             []int32 // at the ends of segments
}

// maxRuns is how many gradients of one state are in memory at once, and so how many of a
// segment's children are taken side by side.
const maxRuns = 16

func (s *schedule) reset() {
	for _, x := range []*[]int32{&s.levels, &s.firstChunk, &s.from, &s.to, &s.chunkRow, &s.chunkLen, &s.before, &s.after,
		&s.runLevels, &s.runs, &s.childRuns, &s.segments, &s.level, &s.children, &s.state, &s.border} {
		*x = (*x)[:0]
	}
	s.states, s.borders = 0, 0
}

// takeTree makes s the schedule of a forest.
func (s *schedule) takeTree(tree *engine.Tree) {
	s.reset()
	s.order(tree)
	for range tree.Start {
		s.state, s.border = append(s.state, -1), append(s.border, -1)
	}
	for _, g := range s.segments {
		from, before := int32(-1), int32(-1)
		if p := tree.Parent[g]; p >= 0 {
			from, before = s.state[p], s.border[p]
		}
		if s.children[g] > 0 {
			s.state[g] = int32(s.states)
			s.states++
		}
		s.from, s.to = append(s.from, from), append(s.to, s.state[g])
		s.border[g] = s.cut(tree.Start[g], tree.Len[g], before, s.children[g] > 0)
	}
	s.firstChunk = append(s.firstChunk, int32(len(s.chunkRow)))
	s.group()
}

// takeSteps makes s the schedule of those steps that come as whole chunks: a level of tasks
// whose states are the cache's.
func (s *schedule) takeSteps(steps *Steps) {
	s.reset()
	for i := range steps.Start {
		if steps.Open[i] < 0 {
			s.from, s.to = append(s.from, steps.From[i]), append(s.to, steps.To[i])
			s.cut(steps.Start[i], steps.Len[i], -1, false)
		}
	}
	s.firstChunk = append(s.firstChunk, int32(len(s.chunkRow)))
	s.levels = append(s.levels, 0, int32(len(s.from)))
}

// order fills in the segments level by level, and what belongs to them.
func (s *schedule) order(tree *engine.Tree) {
	deepest := int32(-1)
	for _, p := range tree.Parent {
		l := int32(0)
		if p >= 0 {
			l = s.level[p] + 1
			s.children[p]++
		}
		s.level, s.children = append(s.level, l), append(s.children, 0)
		deepest = max(deepest, l)
	}
	s.levels = append(s.levels, 0)
	for l := range deepest + 1 {
		for g := range s.level {
			if s.level[g] == l {
				s.segments = append(s.segments, int32(g))
			}
		}
		s.levels = append(s.levels, int32(len(s.segments)))
	}
}

// cut appends the chunks of a task. border is the one before it; cut returns the one after.
func (s *schedule) cut(row, n, border int32, goesOn bool) int32 {
	s.firstChunk = append(s.firstChunk, int32(len(s.chunkRow)))
	for at := int32(0); at < n; at += chunk {
		s.chunkRow, s.chunkLen = append(s.chunkRow, row+at), append(s.chunkLen, min(chunk, n-at))
		s.before = append(s.before, border)
		border = -1
		if at+chunk < n || goesOn {
			border = int32(s.borders)
			s.borders++
		}
		s.after = append(s.after, border)
	}
	return border
}

// group appends the runs. Roots are alone, since nothing adds up.
func (s *schedule) group() {
	s.runLevels = append(s.runLevels, 0)
	for t := range s.levels[1] {
		s.runs = append(s.runs, t)
	}
	next, level := s.levels[1], 0
	for t, g := range s.segments {
		if int32(t) == s.levels[level] {
			s.runLevels = append(s.runLevels, int32(len(s.runs)))
			level++
		}
		s.childRuns = append(s.childRuns, int32(len(s.runs)))
		n := s.children[g]
		for at := int32(0); at < n; at += (n + maxRuns - 1) / maxRuns {
			s.runs = append(s.runs, next+at)
		}
		next += n
	}
	s.childRuns = append(s.childRuns, int32(len(s.runs)))
	s.runs = append(s.runs, int32(len(s.segments)))
}

// roots is how many tasks, and runs, are roots.
func (s *schedule) roots() int { return int(s.levels[1]) }
