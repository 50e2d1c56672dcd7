//go:build ignore

package main

import "fmt"

func main() {
	numbers := []float64{2, 4, 6}
	sum := 0.0
	for _, n := range numbers {
		sum += n
	}
	fmt.Println("mean:", sum/float64(len(numbers)))
}
