var e=e=>[...new Set(e.split(`
`).map(e=>e.trim()).filter(Boolean))];export{e as t};