import { Detail } from './detail'
import { Workflows } from './list'
import './workflows.css'

// One view for the list of workflows and for a workflow.
export default function View({ id }: { id?: string }) {
  return id === undefined ? <Workflows /> : <Detail key={id} id={id} />
}
