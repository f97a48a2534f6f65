import json, time, pytest
from tests.browser.test_live_dashboard import FILL, SHOW
DBG = "import sys, traceback; print(\"\".join(traceback.format_stack(sys._current_frames()[live._pump.ident])[-6:]), live.LOG[:1])"
def test_x(lab, tmp_path):
    src=[FILL.strip(), """
import time
class L(LiveDashboard):
    LOG=[]
    def _received(self, w, c, b):
        self.LOG.append(('got',time.time(),c.get('type'),threading.current_thread().name)); super()._received(w,c,b)
    def send(self, c, b=None):
        self.LOG.append(('send',time.time(),c.get('type'),c.get('sequence'))); super().send(c,b)
LiveDashboard=L
"""+SHOW, DBG]
    cells=[{"cell_type":"code","id":f"c{n}","metadata":{},"outputs":[],"execution_count":None,"source":s} for n,s in enumerate(src)]
    p=tmp_path/"dbg.ipynb"
    p.write_text(json.dumps({"cells":cells,"metadata":{"kernelspec":{"name":"python3","display_name":"P","language":"python"}},"nbformat":4,"nbformat_minor":5}))
    page=lab(p)
    page.run_cell(0); 
    for i in range(3):
        page.run_cell(1)
        try: page.wait_text("2 hours / 10 minutes (auto)", timeout=15); print("OK")
        except Exception as e: print("FAILED")
        page.run_cell(2); print(page.cell_output_text(2)[:1500])
