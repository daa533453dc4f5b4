package eval

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"caper/data"
	"caper/eval/exactmatch"
	"caper/sqlexec"
)

// A line of a verdict file is a candidate with what was found among its extra fields.
// These functions take it apart again; the error names the field.

// takeFields moves extra fields into values. One that is missing leaves its value as
// it is.
func takeFields(r *data.Rollout, values map[string]any) error {
	for name, value := range values {
		raw, ok := r.Extra[name]
		if !ok {
			continue
		}
		delete(r.Extra, name)
		if err := json.Unmarshal(raw, value); err != nil {
			return fmt.Errorf("%s: %w", name, data.PlainJSONError(err))
		}
	}
	if len(r.Extra) == 0 {
		r.Extra = nil
	}
	return nil
}

// verdictOf reads what every line has.
func verdictOf(line data.Rollout) (j Judged, err error) {
	j.Rollout = line
	err = takeFields(&j.Rollout, map[string]any{
		"metric": &j.By.Metric, "rule": &j.By.Rule, "without": &j.By.Without,
		"verdict": &j.Verdict, "message": &j.Message, "strict_verdict": &j.Strict,
	})
	switch {
	case err != nil:
		return j, err
	case j.Verdict == "":
		return j, errors.New("verdict: missing: name the benchmark with --bench, so that it can be judged")
	case !slices.Contains(verdicts, j.Verdict):
		return j, fmt.Errorf("verdict: %q: want one of %q", j.Verdict, verdicts)
	}
	return j, j.By.check()
}

// JudgedOf reads a line of Judged.Line.
func JudgedOf(line data.Rollout) (Judged, error) {
	j, err := verdictOf(line)
	if err == nil {
		j.Quirks, err = takeQuirks(&j.Rollout)
	}
	return j, err
}

func takeQuirks(r *data.Rollout) (quirks sqlexec.Quirks, err error) {
	var list []explanation
	err = takeFields(r, map[string]any{"quirks": &list})
	for _, e := range list {
		quirks = append(quirks, e.Quirk)
	}
	return quirks, err
}

// MatchedOf reads a line of Matched.Line.
func MatchedOf(line data.Rollout) (m Matched, err error) {
	j, err := JudgedOf(line)
	if err != nil {
		return m, err
	}
	m = Matched{Rollout: j.Rollout, By: j.By, Verdict: j.Verdict, Message: j.Message, Strict: j.Strict, Quirks: j.Quirks}
	parts := map[string]matchedPart{}
	err = takeFields(&m.Rollout, map[string]any{"hardness": &m.Hardness, "parts": &parts})
	if len(parts) > 0 { // there is none where nothing was compared
		for _, name := range exactmatch.PartNames {
			m.Score.Parts = append(m.Score.Parts, exactmatch.Part(parts[name]))
		}
	}
	m.Score.Exact = m.Verdict == Correct
	return m, err
}

// TimedOf reads a line of Timed.Line.
func TimedOf(line data.Rollout) (t Timed, err error) {
	if t.Judged, err = JudgedOf(line); err != nil {
		return t, err
	}
	t.Score = EfficiencyScore(t.By.Metric)
	var percent float64
	err = takeFields(&t.Rollout, map[string]any{"time_ratio": &t.Ratio, "time_ratio_median": &t.Median, string(t.Score): &percent})
	t.Value, t.MedianValue = t.Score.value(t.Ratio), t.Score.value(t.Median)
	return t, err
}

// SoftlyOf reads a line of Softly.Line.
func SoftlyOf(line data.Rollout) (s Softly, err error) {
	if s.Judged, err = JudgedOf(line); err == nil {
		err = takeFields(&s.Rollout, map[string]any{"soft_f1": &s.SoftF1})
	}
	return s, err
}
