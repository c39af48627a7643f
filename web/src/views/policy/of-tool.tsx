// The tool in the address: tool=SOURCE:TOOL has a part of the policy list the settings alone that can apply to it.
import { useParams } from '../../lib/params'
import { shown } from '../../lib/text'
import { Button } from '../../ui'
import { covers } from './rows'

// useTool returns the rows whose pattern covers the tool in the address; all, where it has none.
export function useTool<T extends { tool: string }>(rows: readonly T[]): readonly T[] {
  const tool = useParams()[0].get('tool')
  return tool ? rows.filter((row) => covers(row.tool, tool)) : rows
}

// OfTool shows that a list is about one tool, and the way to the whole list.
export function OfTool({ rows }: { rows: readonly { tool: string }[] }) {
  const [params, change] = useParams()
  const tool = params.get('tool')
  const { length } = useTool(rows)
  if (!tool) return null
  return (
    <p className="row" role="status">
      <span>
        {length} of {rows.length} can apply to <bdi className="mono">{shown(tool)}</bdi>.
      </span>
      <Button kind="quiet" onClick={() => change({ tool: undefined })}>
        Show all
      </Button>
    </p>
  )
}
