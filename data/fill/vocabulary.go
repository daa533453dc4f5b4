package fill

import "strings"

// Words that values are made of. They are common ones, so that a filled database
// reads like one; which words they are decides nothing.
var (
	firstNames = words("Alice Bruno Clara David Elena Frank Grace Hugo Irene Jonas Karen Louis Maria Nadia Oscar Paula Quentin Rosa Simon Tessa Victor Wendy Yusuf Zoe")
	lastNames  = words("Adams Baker Castro Dubois Evans Fischer Garcia Hansen Ivanov Jones Keller Lopez Meyer Nguyen Olsen Porter Quinn Rossi Smith Turner Usman Vidal Walker Young")
	cities     = words("Austin Boston Chicago Dublin Edmonton Florence Geneva Houston Istanbul Jakarta Kyoto Lisbon Madrid Nairobi Oslo Paris Quito Rome Seattle Toronto")
	countries  = words("Argentina Brazil Canada Denmark Egypt France Germany Hungary India Japan Kenya Mexico Norway Poland Spain Turkey")
	languages  = words("English French Spanish German Italian Japanese Arabic Hindi")
	colors     = words("red blue green yellow black white purple orange")
	adjectives = words("Silent Golden Ancient Modern Little Bright Distant Northern Hidden Royal Early Simple")
	nouns      = words("River Garden Mountain Bridge Harbor Forest Market Tower Island Valley Mirror Lantern")
	categories = words("Standard Premium Basic Special Regular Advanced Local Global")
	statuses   = words("open closed pending active done cancelled")
	subjects   = words("History Biology Physics Music Law Medicine Economics Chemistry")
	streets    = words("Oak Pine Maple Cedar Elm Lake Hill Park")
	months     = words("January February March April May June July August September October November December")
	weekdays   = words("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")
)

func words(list string) []string { return strings.Fields(list) }
