package fill

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
)

// generator draws a value.
type generator func(r *rand.Rand) any

// Sizes of pools: how many different values a column holds beside the literals.
const (
	fewValues  = 7  // categories: groups of several rows
	manyValues = 24 // names, amounts, dates: some repeat
)

// generatorOf chooses what a domain's other values look like, and how many there
// are: numbers around the numeric literals, dates in the literals' layout, codes of
// the literals' shape, else what the columns' names suggest.
func generatorOf(d *domain, rows int) (g generator, spread int) {
	name := d.words()
	numeric := d.summed || slices.ContainsFunc(d.columns, func(c *column) bool { return c.affinity.IsNumber() })
	var numbers []float64
	var texts []string
	for _, v := range d.literals {
		if s, ok := v.(string); ok {
			texts = append(texts, s)
		} else {
			numbers = append(numbers, float(v))
		}
	}
	if numeric && len(numbers) > 0 {
		texts = nil // a number column, and a slip of some query
	}
	switch layout := layoutOf(texts); {
	case layout != "":
		return dates(layout, texts), manyValues
	case len(texts) > 0 && isCode(texts[0]):
		return shaped(texts), manyValues / 2
	case len(texts) > 0 || !numeric:
		return textGenerator(name)
	}
	return numberGenerator(d, name, numbers, rows)
}

// words are the parts of the columns' names in lower case, between blanks:
// " first name ".
func (d *domain) words() string {
	var b strings.Builder
	for _, c := range d.columns {
		b.WriteByte(' ')
		last := ' '
		for _, char := range c.name {
			switch {
			case !unicode.IsLetter(char):
				char = ' '
			case unicode.IsUpper(char) && unicode.IsLower(last):
				b.WriteByte(' ')
			}
			b.WriteRune(unicode.ToLower(char))
			last = char
		}
	}
	return b.String() + " "
}

// layoutOf is the layout of the first text that is a date.
func layoutOf(texts []string) string {
	for _, t := range texts {
		if layout := dateLayout(t); layout != "" {
			return layout
		}
	}
	return ""
}

// isCode tells a code such as QM-261 or USA from words.
func isCode(text string) bool {
	if strings.Contains(text, " ") || len(text) > 12 {
		return false
	}
	return strings.ContainsAny(text, "0123456789") || strings.ToUpper(text) == text && len(text) < 5
}

// shaped draws codes with letters and digits where a literal has some.
func shaped(literals []string) generator {
	literals = slices.DeleteFunc(slices.Clone(literals), func(s string) bool { return !isCode(s) })
	return func(r *rand.Rand) any {
		return strings.Map(func(c rune) rune {
			switch {
			case c >= '0' && c <= '9':
				return '0' + r.Int32N(10)
			case c >= 'a' && c <= 'z':
				return 'a' + r.Int32N(26)
			case c >= 'A' && c <= 'Z':
				return 'A' + r.Int32N(26)
			}
			return c
		}, pick(r, literals))
	}
}

// dates draws dates within two years of a literal, today's century without one.
func dates(layout string, literals []string) generator {
	centers := []time.Time{time.Date(2012, time.June, 15, 12, 0, 0, 0, time.UTC)}
	for _, text := range literals {
		if t, err := time.Parse(layout, text); err == nil {
			centers = append(centers, t)
		}
	}
	if len(centers) > 1 {
		centers = centers[1:]
	}
	return func(r *rand.Rand) any {
		t := pick(r, centers).AddDate(0, 0, r.IntN(1461)-730).Add(time.Duration(r.IntN(86400)) * time.Second)
		return t.Format(layout)
	}
}

// suggestion is what a column's name says of its values; the first that fits counts.
type suggestion struct {
	name   *regexp.Regexp
	spread int
	draw   generator
}

func suggest(names string, spread int, draw generator) suggestion {
	return suggestion{regexp.MustCompile(" (" + names + ")"), spread, draw}
}

func from(list []string) generator {
	return func(r *rand.Rand) any { return pick(r, list) }
}

// formatted draws numbers from low to high as texts.
func formatted(format string, low, high int) generator {
	return func(r *rand.Rand) any { return fmt.Sprintf(format, low+r.IntN(high-low+1)) }
}

// letters draws n capital letters.
func letters(r *rand.Rand, n int) string {
	text := make([]byte, n)
	for i := range text {
		text[i] = byte('A' + r.IntN(26))
	}
	return string(text)
}

func phrase(r *rand.Rand) any { return pick(r, adjectives) + " " + pick(r, nouns) }

func fullName(r *rand.Rand) any { return pick(r, firstNames) + " " + pick(r, lastNames) }

var textSuggestions = []suggestion{
	suggest("detail|description|comment|note|title", manyValues, phrase),
	suggest("datetime|timestamp", manyValues, dates(time.DateTime, nil)),
	suggest("date|dob|birthday|birth day|day of|since|founded|opened|from |to |when", manyValues, dates(time.DateOnly, nil)),
	suggest("time|duration", manyValues, dates("15:04:05", nil)),
	suggest("year|season", 12, formatted("%d", 1998, 2018)),
	suggest("month", 12, from(months)),
	suggest("weekday|day", 7, from(weekdays)),
	suggest("status|result|outcome|condition", fewValues-1, from(statuses)),
	suggest("type|category|class|kind|level|genre|rank|grade|position|role|party|group|style|method|size", fewValues, from(categories)),
	suggest("phone|telephone|fax|cell|mobile", manyValues, formatted("555-%04d", 0, 9999)),
	suggest("zip|post", manyValues, formatted("%05d", 10000, 99999)),
	suggest("extension|room |office ", manyValues, formatted("%d", 100, 499)),
	suggest("code |id |number |num |no |key |isbn|issn", manyValues, func(r *rand.Rand) any {
		return fmt.Sprintf("%s%03d", letters(r, 2), r.IntN(1000))
	}),
	suggest("initial|middle", manyValues, func(r *rand.Rand) any { return letters(r, 1) }),
	suggest("first name|fname|forename|given", manyValues, from(firstNames)),
	suggest("last name|lname|surname|family name", manyValues, from(lastNames)),
	suggest("gender|sex", 2, from([]string{"F", "M"})),
	suggest("e?mail", manyValues, func(r *rand.Rand) any {
		return strings.ToLower(pick(r, firstNames)) + "@" + strings.ToLower(pick(r, nouns)) + ".org"
	}),
	suggest("address|street|line", manyValues, func(r *rand.Rand) any {
		return fmt.Sprintf("%d %s Street", 1+r.IntN(99), pick(r, streets))
	}),
	suggest("url|web|link|homepage", manyValues, func(r *rand.Rand) any {
		return fmt.Sprintf("www.%s%d.org", strings.ToLower(pick(r, nouns)), r.IntN(100))
	}),
	suggest("city|town|hometown|location|place|venue|district|county|birthplace|origin", 14, from(cities)),
	suggest("country|nation|state |region|continent", 10, from(countries)),
	suggest("language", fewValues, from(languages)),
	suggest("colou?r", fewValues, from(colors)),
	suggest("major|subject|department|dept|course|field|speciali", fewValues, from(subjects)),
	suggest("yn|is |has |can |flag", 2, from([]string{"Y", "N"})),
	suggest("customer|student|player|driver|author|artist|director|manager|owner|person|member|staff|employee|coach|leader|president|winner|host", manyValues, fullName),
}

// textGenerator follows the columns' names.
func textGenerator(name string) (generator, int) {
	for _, s := range textSuggestions {
		if s.name.MatchString(name) {
			return s.draw, s.spread
		}
	}
	return phrase, manyValues
}

// ranges of numbers by name, where no literal says more.
var numberRanges = []struct {
	name      *regexp.Regexp
	low, high int
	decimals  bool
}{
	{regexp.MustCompile(" (year|founded|season|since)"), 1995, 2018, false},
	{regexp.MustCompile(" (month)"), 1, 12, false},
	{regexp.MustCompile(" (age)"), 17, 70, false},
	{regexp.MustCompile(" (day|hour)"), 1, 24, false},
	{regexp.MustCompile(" (is|has|flag|bool)"), 0, 1, false},
	{regexp.MustCompile(" (rank|ranking|level|grade|position|round|floor|stars?|credits?|crs|quantity)"), 1, 9, false},
	{regexp.MustCompile(" (rating|score|gpa|rate)"), 1, 9, true},
	{regexp.MustCompile(" (percent|percentage|share|lat|latitude|long|longitude)"), 1, 99, true},
	{regexp.MustCompile(" (price|cost|amount|fee|weight|height|length|value|payment)"), 5, 500, true},
	{regexp.MustCompile(" (salary|population|budget|sales|revenue|assets|profits|income|capacity|attendance|area|distance)"), 1000, 90000, false},
}

// numberGenerator spans the literals with room on both sides. Numbers of keys
// count from 1.
func numberGenerator(d *domain, name string, literals []float64, rows int) (generator, int) {
	low, high, decimals := 1.0, 100.0, false
	for _, s := range numberRanges {
		if s.name.MatchString(name) {
			low, high, decimals = float64(s.low), float64(s.high), s.decimals
			break
		}
	}
	isKey := slices.ContainsFunc(d.columns, func(c *column) bool { return c.unique })
	if isKey {
		low, high, decimals = 1, float64(rows), false
	} else if len(literals) > 0 {
		low, high = slices.Min(literals), slices.Max(literals)
		room := max(high-low, min(abs(high)/3, 40), 5)
		low, high = low-room, high+room
		if slices.Min(literals) >= 0 {
			low = max(low, 0)
		}
		for _, v := range literals {
			decimals = decimals || v != float64(int64(v))
		}
		if strings.Contains(name, " year") {
			decimals = false
		}
	}
	return func(r *rand.Rand) any {
		v := low + r.Float64()*(high-low)
		if decimals {
			return coerce(float64(int64(v*10))/10, d.columns[0].affinity)
		}
		return coerce(int64(v+0.5), d.columns[0].affinity)
	}, manyValues
}

func abs(f float64) float64 { return max(f, -f) }
