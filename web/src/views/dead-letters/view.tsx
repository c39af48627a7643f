import './dead-letters.css'
import { Groups } from './groups'
import { Letter } from './letter'

// One view for the groups of dead letters, the letters of a filter, and one letter.
export default function View({ id }: { id?: string }) {
  return id === undefined ? <Groups /> : <Letter key={id} id={id} />
}
