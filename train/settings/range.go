package settings

import "math"

// Range says which values the numbers of some keys may take.
type Range struct {
	want  string
	holds func(x float64) bool
	keys  []string
}

// Above0 wants finite numbers above 0.
func Above0(keys ...string) Range {
	return Range{"must be above 0 and finite", func(x float64) bool { return x > 0 && !math.IsInf(x, 0) }, keys}
}

// AtLeast0 wants finite numbers that are not negative.
func AtLeast0(keys ...string) Range {
	return Range{"must be 0 or more, and finite", func(x float64) bool { return x >= 0 && !math.IsInf(x, 0) }, keys}
}

// Share wants numbers in [0, 1].
func Share(keys ...string) Range {
	return Range{"must lie in [0, 1]", func(x float64) bool { return x >= 0 && x <= 1 }, keys}
}

// Within wants numbers for which holds is true; want says which those are.
func Within(want string, holds func(x float64) bool, keys ...string) Range {
	return Range{want, holds, keys}
}

// Check reports the first number of *c that is out of its range.
func (o Origin) Check(c any, ranges ...Range) error {
	values := Values(c)
	for _, r := range ranges {
		for _, key := range r.keys {
			if !r.holds(number(values[key])) {
				return o.Mistake(c, key, "%s", r.want)
			}
		}
	}
	return nil
}

func number(value any) float64 {
	if n, ok := value.(int64); ok {
		return float64(n)
	}
	x, _ := value.(float64)
	return x
}
