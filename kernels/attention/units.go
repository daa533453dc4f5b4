package attention

// splitLen is the positions of a cache that a block of the CUDA kernels takes: SPLIT of op.cu,
// two blocks of the cache.
const splitLen = 2 * BlockLen

// units are the work of decoding on a GPU.
type units struct {
	// list [.][4] are the units: first pair, end of the pairs, split; 0. They are rows of a
	// bundle with a split that they share, or one row with one of its own. Pair p is row
	// p/group, and head p%group of a key head's group.
	list []int32
	// slots [rows] is where among the splits of its pass the splits of each row begin.
	slots  []int32
	passes []pass
}

// pass is some bundles' share of the work. Passes run one after the other in the same
// memory: what splits leave for each other would else be much for long prompts.
type pass struct {
	unit, units int // in list
	row, rows   int
	splits      int
}

// build cuts the work into passes of at most `most` splits of rows, or one bundle.
func (u *units) build(p *Places, group, most int) {
	u.list, u.slots, u.passes = u.list[:0], u.slots[:0], u.passes[:0]
	now := pass{}
	for b, first := range p.First {
		end := len(p.Position)
		if b+1 < len(p.First) {
			end = int(p.First[b+1])
		}
		splits := 0
		for _, position := range p.Position[first:end] {
			splits += int(position)/splitLen + 1
		}
		if now.rows > 0 && now.splits+splits > most {
			u.passes = append(u.passes, now)
			now = pass{unit: len(u.list) / 4, row: int(first)}
		}
		now.units += u.addBundle(p, int(first), end, int(p.Shared[b])*BlockLen/splitLen, group)
		for _, position := range p.Position[first:end] {
			u.slots = append(u.slots, int32(now.splits))
			now.splits += int(position)/splitLen + 1
		}
		now.rows += end - int(first)
	}
	if now.rows > 0 {
		u.passes = append(u.passes, now)
	}
}

// addBundle appends the units of rows [first, end), which have `shared` splits in common, and
// returns how many they are.
func (u *units) addBundle(p *Places, first, end, shared, group int) int {
	before := len(u.list)
	for split := range shared {
		u.add(first, end, split, group)
	}
	for row := first; row < end; row++ {
		for split := shared; split <= int(p.Position[row])/splitLen; split++ {
			u.add(row, row+1, split, group)
		}
	}
	return (len(u.list) - before) / 4
}

func (u *units) add(row, end, split, group int) {
	for pair := row * group; pair < end*group; pair += tileLen {
		u.list = append(u.list, int32(pair), int32(min(pair+tileLen, end*group)), int32(split), 0)
	}
}
