package eval

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// coins are outcomes of questions that are right with probability p, all different
// for different seeds.
func coins(questions int, p float64, seed uint64) []Outcome {
	random := rand.New(rand.NewPCG(seed, 7))
	var outcomes []Outcome
	for q := range questions {
		value := 0.0
		if random.Float64() < p {
			value = 1
		}
		outcomes = append(outcomes, Outcome{Question: fmt.Sprint(q), Value: value})
	}
	return outcomes
}

func TestCompareSeedsFindsADifference(t *testing.T) {
	const questions = 800
	var reference, variant [][]Outcome
	for seed := range uint64(3) {
		reference = append(reference, coins(questions, 0.5, seed))
		variant = append(variant, coins(questions, 0.6, 100+seed))
	}
	c, err := CompareSeeds(reference, variant, 1000, 1)
	if err != nil {
		t.Fatal(err)
	}
	want := 0.0
	for s := range reference {
		for q := range questions {
			want += (variant[s][q].Value - reference[s][q].Value) / float64(3*questions)
		}
	}
	if math.Abs(c.Difference-want) > 1e-12 || math.Abs(c.Variant-c.Reference-want) > 1e-12 {
		t.Errorf("difference %v of %v and %v, want %v", c.Difference, c.Variant, c.Reference, want)
	}
	// Independent coins: the difference of two means of n coins, three times.
	sigma := math.Sqrt((0.25 + 0.24) / (3 * questions))
	if width := c.Interval[1] - c.Interval[0]; width < 2*1.96*sigma*0.7 || width > 2*1.96*sigma*2.5 {
		t.Errorf("interval %v is %v wide; two means of coins differ within %v", c.Interval, width, 2*1.96*sigma)
	}
	if c.Interval[0] <= 0 {
		t.Errorf("interval %v: ten points in a hundred went unnoticed", c.Interval)
	}
}

// Seeds that differ more than questions do must widen the interval.
func TestCompareSeedsCountsTheSeeds(t *testing.T) {
	all := func(value float64) []Outcome {
		o := coins(400, 0, 1)
		for i := range o {
			o[i].Value = value
		}
		return o
	}
	zero := [][]Outcome{all(0), all(0), all(0), all(0)}
	c, err := CompareSeeds(zero, [][]Outcome{all(1), all(-1), all(1), all(-1)}, 1000, 1)
	if err != nil {
		t.Fatal(err)
	}
	if c.Difference != 0 || c.Interval[0] > -0.5 || c.Interval[1] < 0.5 {
		t.Errorf("difference %v, interval %v: four seeds of +1 and -1 say nothing", c.Difference, c.Interval)
	}
}

func TestCompareSeedsWantsTheSameItems(t *testing.T) {
	a, b := coins(5, 0.5, 1), coins(6, 0.5, 1)
	if _, err := CompareSeeds([][]Outcome{a}, [][]Outcome{b}, 10, 1); err == nil {
		t.Error("five items were compared with six")
	}
	if _, err := CompareSeeds([][]Outcome{a, a}, [][]Outcome{a}, 10, 1); err == nil {
		t.Error("two seeds were compared with one")
	}
}
