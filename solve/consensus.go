package solve

// Consensus says how the triples of answers become the score S_maj of one.
type Consensus string

const (
	// Jaccard is the mean over the pool's candidates of the share of triples that two
	// answers have in common:
	//
	//	S_maj(a) = sum over b of votes(b) |E_a and E_b| / |E_a or E_b| / sum of votes
	//
	// One less that share is a metric, so the best answer is the median of the pool, and
	// an answer that more than half of the candidates give is always the best one
	// (Goldman's majority property): scoring by cells never overrules an absolute
	// majority, and decides only where plain voting has none.
	Jaccard Consensus = "jaccard"
	// Mean is the mean over an answer's own triples of the share of candidates that have
	// them. It rewards answers that are part of others: one row of the right ten gets
	// all ten's votes.
	Mean Consensus = "mean"
)

// consensus returns S_maj of each class.
func consensus(classes []Class, by Consensus) []float64 {
	total := 0
	for _, c := range classes {
		total += c.Votes
	}
	scores := make([]float64, len(classes))
	for i := range classes {
		sum := 0.0
		for j := range classes {
			sum += float64(classes[j].Votes) * agreement(&classes[i].answer, &classes[j].answer, by)
		}
		scores[i] = sum / float64(total)
	}
	return scores
}

// agreement is how much of answer a answer b confirms, from 0 to 1.
func agreement(a, b *answer, by Consensus) float64 {
	if a.signature == b.signature {
		return 1
	}
	shared := a.shared(b)
	if by == Mean {
		if a.size == 0 {
			return 0
		}
		return float64(shared) / float64(a.size)
	}
	if a.size+b.size == 0 {
		return 0
	}
	return float64(shared) / float64(a.size+b.size-shared)
}
