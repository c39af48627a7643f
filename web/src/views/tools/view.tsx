import '../../form/form.css'
import './tools.css'
import { Tools } from './list'
import { toolAt } from './names'
import { OneTool } from './tool'

// One view for the list of tools and one tool.
export default function View({ id }: { id?: string }) {
  const tool = toolAt(location.pathname)
  return id === undefined || tool === '' ? <Tools /> : <OneTool key={tool} name={tool} />
}
