package sample

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// kind is what an attribute's values are.
type kind int

const (
	category kind = iota // one of a short list of words
	title                // two words, rarely repeated in a table
	whole                // an integer
	decimal              // a number in steps of one half
	date                 // YYYY-MM-DD
)

// attribute is a column that means the same, with values of the same domain, in
// every table that has it.
type attribute struct {
	name      string
	kind      kind
	words     []string // category: the values; title: the first words
	second    []string // title: the second words
	low, high int      // whole, decimal: bounds; date: years
	nullable  bool
}

func (a *attribute) numeric() bool { return a.kind == whole || a.kind == decimal }

// draw returns a value: int64, float64 or string.
func (a *attribute) draw(r *rand.Rand) any {
	switch a.kind {
	case category:
		return pick(r, a.words...)
	case title:
		return pick(r, a.words...) + " " + pick(r, a.second...)
	case whole:
		return int64(a.low + r.IntN(a.high-a.low+1))
	case decimal:
		return float64(2*a.low+r.IntN(2*(a.high-a.low)+1)) / 2
	default:
		day := time.Date(a.low, time.January, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, r.IntN(365*(a.high-a.low+1)))
		return day.Format(time.DateOnly)
	}
}

// class is a group of table names that take the same attributes. The first
// attribute names a row of the table.
type class struct {
	nouns      []string
	attributes []string
	linked     bool // such a table refers to others
}

// vocabulary holds every name and value of a family of databases. All words
// are common English ones that stay whole in a small tokenizer, and none is a
// word of the question templates.
type vocabulary struct {
	key        string // primary key column; a foreign key is TABLE_KEY
	classes    []class
	attributes []*attribute
}

func (v *vocabulary) attribute(name string) *attribute {
	for _, a := range v.attributes {
		if a.name == name {
			return a
		}
	}
	panic(fmt.Sprintf("sample: vocabulary lacks the attribute %q of its own classes", name))
}

func oneOf(name, words string) *attribute {
	return &attribute{name: name, kind: category, words: list(words), nullable: true}
}

func twoOf(name, first, second string) *attribute {
	return &attribute{name: name, kind: title, words: list(first), second: list(second)}
}

func number(name string, k kind, low, high int) *attribute {
	return &attribute{name: name, kind: k, low: low, high: high, nullable: true}
}

func list(text string) []string {
	words := strings.FieldsFunc(text, func(c rune) bool { return c == ',' })
	for i, w := range words {
		words[i] = strings.TrimSpace(w)
	}
	return words
}

const firstNames = "Anna,Bruno,Clara,David,Elena,Felix,Grace,Hugo,Irene,Jonas,Karen,Louis,Maria,Nadia,Oscar,Paula,Quinn,Rosa,Simon,Tara,José,Zoë,Björn,Chloé"

// knownWords is the vocabulary of the splits train, dev and test.
var knownWords = &vocabulary{
	key: "id",
	classes: []class{
		{nouns: list("singer,actor,author,chef,coach,doctor,driver,farmer,lawyer,nurse,pilot,student,teacher,engineer,dancer"),
			attributes: list("name,age,height,weight,salary,city,country,language,birthday,rating,wins")},
		{nouns: list("hotel,museum,school,theater,library,hospital,stadium,restaurant,station,airport,market,factory,farm,gallery,bank"),
			attributes: list("name,city,country,region,capacity,area,rating,manager,opening,budget")},
		{nouns: list("film,book,song,album,painting,magazine,game"), linked: true,
			attributes: list("title,genre,language,year,price,rating,duration,stock")},
		{nouns: list("lamp,chair,phone,camera,bicycle,guitar,jacket,watch"), linked: true,
			attributes: list("title,color,material,price,weight,stock,owner,brand")},
		{nouns: list("concert,race,festival,contest,lecture,workshop,exam,auction"), linked: true,
			attributes: list("title,date,city,fee,duration,status,season,year")},
		{nouns: list("booking,purchase,review,loan,delivery,payment,visit,repair"), linked: true,
			attributes: list("agent,date,cost,quantity,status,weekday,rating")},
	},
	attributes: []*attribute{
		twoOf("name", firstNames, "Adams,Baker,Costa,Diaz,Evans,Fischer,Garcia,Hansen,Ivanov,Jensen,Keller,Lopez,McKay,Novák,Owens,Peters,Müller,Rossi,Silva,Turner"),
		twoOf("title", "Silver,Golden,Silent,Broken,Hidden,Distant,Electric,Winter,Crystal,Midnight,Velvet,Lonely,Burning,Gentle,Ancient,Bright",
			"River,Mountain,Garden,Mirror,Window,Shadow,Island,Forest,Bridge,Castle,Ocean,Harbor,Lantern,Meadow,Tower,Café"),
		oneOf("city", "Paris,London,Berlin,Madrid,Rome,Vienna,Lisbon,Oslo,Dublin,Prague,Zürich,Kraków"),
		oneOf("country", "France,Germany,Spain,Italy,Norway,Poland,Brazil,Japan,Canada,Mexico"),
		oneOf("language", "English,French,Spanish,German,Italian,Polish,Arabic,Korean"),
		oneOf("region", "north,South,East,west,Central,Coastal"),
		oneOf("manager", firstNames), oneOf("owner", firstNames), oneOf("agent", firstNames),
		oneOf("genre", "Drama,comedy,Horror,Romance,Jazz,Rock,Fantasy,History"),
		oneOf("color", "red,blue,green,Black,White,yellow,Purple,orange"),
		oneOf("material", "wood,steel,glass,Leather,cotton,Plastic,stone"),
		oneOf("brand", "Nordic,Apex,Lumen,Vertex,Orbit,Delta,McCoy"),
		oneOf("status", "open,Closed,PENDING,Cancelled,draft"),
		oneOf("season", "spring,summer,autumn,Holiday"),
		oneOf("weekday", "Monday,Tuesday,Wednesday,Thursday,Friday,Saturday,Sunday"),
		number("age", whole, 18, 79), number("height", whole, 150, 209), number("weight", whole, 30, 129),
		number("salary", whole, 20, 199), number("wins", whole, 0, 99), number("capacity", whole, 20, 499),
		number("area", whole, 10, 399), number("budget", whole, 100, 999), number("year", whole, 1950, 2024),
		number("duration", whole, 10, 239), number("stock", whole, 0, 199), number("quantity", whole, 1, 99),
		number("rating", decimal, 0, 50), number("price", decimal, 1, 120), number("fee", decimal, 5, 90), number("cost", decimal, 5, 150),
		number("birthday", date, 1950, 2004), number("opening", date, 1980, 2022), number("date", date, 2010, 2024),
	},
}

// unknownWords is the vocabulary of the split newwords.
var unknownWords = &vocabulary{
	key: "ref",
	classes: []class{
		{nouns: list("wizard,monk,knight,pirate,hermit,shaman,villager"),
			attributes: list("nickname,strength,wisdom,clan,mood,oath,luck")},
		{nouns: list("glacier,volcano,canyon,desert,lagoon,reef,cavern"),
			attributes: list("label,depth,altitude,climate,ranger,surveyed,salinity")},
		{nouns: list("comet,fossil,orchid,falcon,turtle,beetle,meteor"), linked: true,
			attributes: list("label,radius,density,texture,habitat,sighted,charm")},
		{nouns: list("quest,ritual,siege,voyage,eclipse,feast,duel,migration"), linked: true,
			attributes: list("label,omen,danger,moon,toll,begun,witness")},
	},
	attributes: []*attribute{
		twoOf("nickname", "Grim,Swift,Merry,Stout,Pale,Fierce,Humble,Crooked,Lucky,Märi", "Badger,Raven,Otter,Bramble,Thistle,Pebble,Wolf,Sparrow,Flint,Nettle"),
		twoOf("label", "Amber,Obsidian,Scarlet,Hollow,Frozen,Weeping,Howling,Sunken,Ivory,Thorny", "Crown,Spire,Fang,Basin,Ember,Plume,Shell,Abyss,Veil,Größe"),
		oneOf("clan", "Oakheart,Ironside,Fernwood,Dawnguard,Stormcrow"),
		oneOf("mood", "cheerful,Gloomy,anxious,Serene,grumpy"),
		oneOf("oath", "loyalty,Silence,vengeance,Poverty,mercy"),
		oneOf("climate", "humid,Arid,polar,Temperate,tropical"),
		oneOf("ranger", "Ulric,Freya,Sigrid,Tobias,Ingrid,Matteo"),
		oneOf("texture", "smooth,Rough,spiky,Scaly,fuzzy"),
		oneOf("habitat", "swamp,Tundra,prairie,Jungle,marsh"),
		oneOf("omen", "thunder,Comfort,plague,Rainbow,famine"),
		oneOf("moon", "crescent,Waxing,waning,Gibbous"),
		oneOf("witness", "Edda,Gunnar,Hilda,Ragnar,Solveig,Åse"),
		number("strength", whole, 10, 99), number("wisdom", whole, 10, 199), number("luck", decimal, 0, 60),
		number("depth", whole, 20, 899), number("altitude", whole, 100, 999), number("salinity", decimal, 0, 60),
		number("radius", whole, 1, 299), number("density", decimal, 1, 80), number("charm", whole, 0, 99),
		number("danger", whole, 1, 99), number("toll", decimal, 5, 150),
		number("surveyed", date, 1900, 1949), number("sighted", date, 1925, 1949), number("begun", date, 1905, 1945),
	},
}
