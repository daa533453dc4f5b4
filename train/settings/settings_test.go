package settings

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

type section struct {
	Shared
	Files []string `toml:"files"`
	Name  string   `toml:"name"`
	Exact bool     `toml:"exact"`
}

// Shared is embedded: its keys are the section's own.
type Shared struct {
	Steps int `toml:"steps"`
}

type config struct {
	First  section `toml:"first"`
	Second Shared  `toml:"second"`
}

func defaults() config {
	return config{First: section{Shared: Shared{Steps: 3}, Name: "n"}, Second: Shared{Steps: 5}}
}

// A file goes over the defaults and overrides go over the file, also where a section embeds
// another struct.
func TestReadOverDefaults(t *testing.T) {
	c := defaults()
	o, err := Read(&c, []byte("[first]\nfiles = ['a b']\nsteps = 7\n[second]\nsteps = 8\n"), "x.toml", []string{"first.steps=9", "first.name=two words"})
	if err != nil {
		t.Fatal(err)
	}
	if c.First.Steps != 9 || c.Second.Steps != 8 || c.First.Files[0] != "a b" || c.First.Name != "two words" || c.First.Exact {
		t.Errorf("%+v", c)
	}
	for key, want := range map[string]string{
		"first.steps":  `override "first.steps=9": first.steps = 9: too many`,
		"second.steps": "x.toml:5: second.steps = 8: too many",
		"first.exact":  "x.toml: first.exact = false (the default): too many",
	} {
		err := o.Mistake(&c, key, "too %s", "many")
		if !errors.As(err, new(*Error)) || err.Error() != want {
			t.Errorf("%q, want %q", err, want)
		}
	}
}

func TestCheck(t *testing.T) {
	c := defaults()
	for want, r := range map[string]Range{
		"": Above0("first.steps"), "must lie in [0, 1]": Share("first.steps"), "must be odd": Within("must be odd", func(float64) bool { return false }, "second.steps"),
	} {
		err := (Origin{}).Check(&c, AtLeast0("second.steps"), r)
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasSuffix(err.Error(), want)) {
			t.Errorf("%q: error %v", want, err)
		}
	}
}

// What Text writes, Read reads.
func TestTextRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := defaults()
		c.First.Files = rapid.SliceOfN(rapid.String(), 0, 3).Draw(t, "files")
		c.First.Name = rapid.String().Draw(t, "name")
		c.First.Steps = rapid.Int().Draw(t, "steps")
		again := defaults()
		if _, err := Read(&again, []byte(Text(&c)), "", nil); err != nil || Text(&again) != Text(&c) {
			t.Fatalf("error %v, got %+v, want %+v", err, again, c)
		}
	})
}

// A key that is left out, or that an older text does not have, makes no difference.
func TestDifference(t *testing.T) {
	for want, change := range map[string]func(c *config){
		"":             func(c *config) { c.First.Name = "another" },
		"first.steps":  func(c *config) { c.First.Steps, c.First.Name = 1, "another" },
		"second.steps": func(c *config) { c.Second.Steps = 1 },
	} {
		c, d := defaults(), defaults()
		text := TextWithout(&c, "first.name")
		change(&c)
		if key, err := Difference(&c, &d, text, "first.name"); key != want || err != nil {
			t.Errorf("%q: %q, error %v", want, key, err)
		}
		if strings.Contains(text, "name") {
			t.Errorf("%s", text)
		}
	}
	c, d := defaults(), defaults()
	if key, err := Difference(&c, &d, "[second]\nsteps = 5 # a note\n"); key != "" || err != nil {
		t.Errorf("older text: %q, error %v", key, err)
	}
	if _, err := Difference(&c, &d, "[second]\ngone = 1\n"); err == nil || !strings.Contains(err.Error(), "second.gone") {
		t.Errorf("key of another version: error %v", err)
	}
}
