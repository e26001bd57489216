// Draws the figures in the colours of the page: again when the reader's scheme changes, and for paper.
(() => {
  "use strict";
  const root = document.documentElement;
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const SERIES = 6;
  const PAPER = { autosize: false, width: 480, height: 255 };

  const colour = (name) => getComputedStyle(root).getPropertyValue(`--${name}`).trim();
  const faint = (hex, alpha) => {
    const [r, g, b] = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
    return `rgba(${r}, ${g}, ${b}, ${alpha})`;
  };

  function dressed(trace) {
    const own = colour(`s${trace.meta.series % SERIES}`);
    if (trace.meta.role === "band") return { ...trace, fillcolor: faint(own, 0.13) };
    const dress = {
      line: { ...trace.line, color: own },
      marker: { ...trace.marker, color: own, line: { color: colour("paper"), width: 1 } },
      hoverlabel: { bordercolor: own },
    };
    if (trace.text) dress.textfont = { color: own, size: 11 };
    if (trace.error_y) dress.error_y = { ...trace.error_y, color: own, thickness: 1.2 };
    return { ...trace, ...dress };
  }

  function axis(given) {
    return {
      ...given,
      gridcolor: colour("grid"), linecolor: colour("line"), zerolinecolor: colour("line"),
      ticks: "outside", ticklen: 4, tickcolor: colour("line"),
      title: { ...given.title, font: { size: 12 }, standoff: 10 },
    };
  }

  function layout(given, printing) {
    const family = getComputedStyle(document.body).fontFamily;
    return {
      xaxis: axis(given.xaxis), yaxis: axis(given.yaxis),
      showlegend: false, hovermode: "closest", dragmode: false,
      margin: { l: 56, r: 36, t: 18, b: 46 },
      paper_bgcolor: colour("paper"), plot_bgcolor: colour("paper"),
      font: { family, size: 12, color: colour("soft") },
      hoverlabel: { bgcolor: colour("panel"), font: { family, color: colour("ink") }, align: "left", namelength: -1 },
      ...(printing ? PAPER : { autosize: true }),
    };
  }

  function draw(printing) {
    for (const { id, figure } of figures) {
      const config = {
        responsive: !printing, displayModeBar: printing ? false : "hover", displaylogo: false,
        modeBarButtons: [["toImage"]], toImageButtonOptions: { filename: id, scale: 2 },
      };
      Plotly.react(`chart-${id}`, figure.data.map(dressed), layout(figure.layout, printing), config);
    }
    root.dataset.drawn = printing ? "paper" : "screen";
  }

  draw(false);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw(false));
  addEventListener("beforeprint", () => {
    root.classList.add("printing");
    document.querySelectorAll("details").forEach((part) => { part.open = true; });
    draw(true);
  });
  addEventListener("afterprint", () => {
    root.classList.remove("printing");
    draw(false);
  });
})();
