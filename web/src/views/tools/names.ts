// Names of tools in addresses. A name may have any characters, also a slash.

const escaped = (tool: string) => encodeURIComponent(tool).replaceAll('%3A', ':')

// toolHref returns the address of a tool's view.
export const toolHref = (tool: string) => `/tools/${escaped(tool)}`

// toolAPI returns the path of a tool in the API.
export const toolAPI = (tool: string) => `/api/v1/tools/${escaped(tool)}`

// toolAt returns the tool that the path of the page names, or '' where the path is no address of a tool. The router
// decodes a path in part, so that an escaped percent sign could not be told from a slash.
export function toolAt(pathname: string): string {
  try {
    return decodeURIComponent(pathname.replace(/^\/tools\/?/, ''))
  } catch {
    return ''
  }
}
