package plan

import (
	"fmt"
	"strings"
)

// Card is a GPU as its maker states it.
type Card struct {
	Name   string  `json:"name"`
	Memory float64 `json:"memory_bytes"`
	// Peak is dense bf16 operations a second with float32 accumulation: not the figure
	// with sparsity, which is twice that.
	Peak float64 `json:"peak_flops"`
	// Bandwidth of the memory in bytes a second, which bounds sampling.
	Bandwidth float64 `json:"bandwidth_bytes_per_second"`
}

// Cards are the GPUs that FindCard knows.
var Cards = []Card{
	{"H200", 141e9, 989e12, 4.8e12},
	{"H100", 80e9, 989e12, 3.35e12},
	{"A100", 80e9, 312e12, 2.039e12},
	{"A100-40GB", 40e9, 312e12, 1.555e12},
	{"B200", 180e9, 2250e12, 8e12},
	{"L40S", 48e9, 362e12, 0.864e12},
	{"RTX4090", 24e9, 165e12, 1.008e12},
}

// FindCard returns a card by its name.
func FindCard(name string) (Card, error) {
	var names []string
	for _, c := range Cards {
		if strings.EqualFold(c.Name, name) {
			return c, nil
		}
		names = append(names, c.Name)
	}
	return Card{}, fmt.Errorf("card %q: not one of %s; another one is described by --memory and --peak", name, strings.Join(names, ", "))
}
