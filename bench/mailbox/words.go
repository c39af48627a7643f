package mailbox

import "strings"

var connectives = strings.Fields("because while although until unless whereas before after")

var words = strings.Fields(`the plan meeting report draft garden invoice contract team project delivery schedule budget review
	question answer change update number order customer supplier office station harbour bridge window kitchen table
	morning evening Monday Thursday week month quarter year deadline holiday travel train ticket hotel flight visit
	agree send read write check confirm cancel move order deliver prepare finish begin discuss compare measure count
	small large early late open closed first second last next other same possible urgent simple long short good
	paper letter page folder picture table list figure result sample version copy original change note comment
	price cost offer discount payment account balance transfer receipt refund total amount rate tax share
	school course lesson teacher student exam library book chapter story film concert music theatre match club
	server network release build test branch deploy issue merge code review module package version queue worker
	water light stone wood paint fence gate roof floor wall door road field forest river weather rain snow wind
	coffee bread cheese apple dinner lunch recipe kitchen market shop basket bottle glass plate knife spoon`)
